// Package cluster looks at a cluster, and at the control-plane node it runs on
// if there is one, and tells what a scheduler for it has to be like: which
// release, which config API, where it runs, which port is free, whose
// credentials it can use.
//
// [Detect] reads and never writes. Only the version of the API server is
// indispensable; whatever else may not be read becomes a warning. The result,
// [Info], is plain data.
//
// What distributions do differently stands in two tables: where they keep the
// scheduler's files on a node (layout.go) and how they are recognised
// (distribution.go).
package cluster
