// Package roles says who may send what to whom, and who may see which record: one table each, and no other place
// decides it. The hub asks before it takes a message in, and every way out asks before a record leaves. It refuses to
// know keys, certificates and connections: roles and peers come in as proven by others. Its functions are pure and may
// be called from any number of goroutines.
package roles
