// Package inspect inspects a cluster and, on a control-plane node, the node, to collect the input
// for a scheduler: release, config API, nodes, a free port, credentials.
//
// [Detect] only reads. Only the API server's version is required; anything else that cannot be read
// becomes a warning. The result, [Info], is plain data.
//
// Two tables list the differences between distributions: where they keep the scheduler's files on a
// node (layout.go) and how to identify them (distribution.go).
package inspect
