// Package webpush is what a node needs to tell somebody's browser, through the browser maker's push service, that something
// waits for a person: the sealing of a note (RFC 8291), the proof of who sends it (RFC 8292), the way there (RFC 8030), and
// Damper, which decides what is worth one. Package node has one Sender and asks a Damper for each person. It refuses
// endpoints that are not public HTTPS, by their name and again by each address that the name stands for at each delivery,
// never follows a redirect, and says nothing of what a push service answers but its status. A Sender and a Key may be used
// by any number of callers at once; a Damper, which is pure, by one.
package webpush
