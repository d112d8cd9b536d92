// Package versions contains the differences between the releases of Kubernetes that pmk-sched
// supports. Every difference is a row of a table of half-open ranges of minor releases (table.go,
// plugins.go); Select combines the rows for a release and returns the result as plain data.
//
// The package imports nothing of this module and does no I/O.
package versions
