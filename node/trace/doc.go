// Package trace gives spans to a collector of OpenTelemetry by OTLP over HTTP, in its JSON form, and says which span of a
// message is which. Package node puts what happened to messages into it, where its home's configuration names a collector.
// It refuses to slow down whoever puts a span: what finds no room, or no collector, is dropped and counted.
// Put and Counts may be called by many at once; Run is one goroutine's.
package trace
