// Package install puts a second scheduler on a cluster and takes it away again.
//
// Work goes through three stages. [Options] is what a person asked for.
// [NewPlan] turns it, together with what was found on the cluster, into a
// [Plan]: every decision made, every object rendered, nothing touched; it does
// no I/O. [Deploy] runs a plan as an ordered list of named steps, each with its
// undo beside it; [Render] and [Diff] show the same plan without running it,
// and [Uninstall] removes what Deploy made.
//
// What the steps need from outside — a cluster to write to, checks, the binary
// that will read the configuration — comes in [Deps], behind small interfaces
// that this package declares.
package install
