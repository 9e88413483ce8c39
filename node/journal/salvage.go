package journal

func (j *Journal) salvage(path string) error { return nil }

func tornBytes(path string) int64 { return 0 }
