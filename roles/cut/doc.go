// Package cut says who has the members of the inside compare their boards, when, and what their answers mean: a majority of
// the members is believed, and whoever made something else of the same records differs. Package node asks it with what its
// board and links say. It refuses to call anybody wrong where no majority is, or where programs of different versions fold.
// Everything is a value, so any number may call concurrently.
package cut
