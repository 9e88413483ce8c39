// Package spec holds the contract of /ws in our own words: numbered rules, the catalogue of names, and vectors, which are
// scripts of frames that show the rules. Package check runs the vectors against a hub; tests compare the rest with the code.
// It refuses a file that does not parse, a rule that nothing shows, and a vector that shows no rule.
// What it returns is read-only, and anyone may call it concurrently.
package spec
