// Package versions knows what differs between the releases of Kubernetes that
// pmk-sched supports. Every difference is a row of one table of half-open
// ranges of minors (table.go, plugins.go); Select lays the rows that hold for a
// release over each other and returns the result as plain data.
//
// The package is a leaf: it imports nothing of this module and does no I/O.
package versions
