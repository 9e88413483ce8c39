package web

import "rsc.io/qr"

// squares are the rows of a QR code, a 1 for each dark square; nil if the text is too long for one. What it says is as secret
// as the text: it is made for one answer, to a person who is signed in, and kept nowhere.
func squares(text string) []string {
	code, err := qr.Encode(text, qr.L)
	if err != nil {
		return nil
	}
	out := make([]string, code.Size)
	for y := range out {
		row := make([]byte, code.Size)
		for x := range row {
			if row[x] = '0'; code.Black(x, y) {
				row[x] = '1'
			}
		}
		out[y] = string(row)
	}
	return out
}
