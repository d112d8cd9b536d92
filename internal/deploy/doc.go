// Package deploy deploys and uninstalls a second scheduler.
//
// [NewPlan] turns [Options] and the state of the cluster into a [Plan], which is data: every
// decision is made and every object rendered, without I/O. [Deploy] runs a plan as a sequence of
// named steps, each with its undo; [Render], [Diff] and [DryRun] show the same plan without running
// it. [Uninstall] removes the objects that Deploy created.
//
// [Deps] are the dependencies of the steps: a cluster, checks and the binary that will read the
// configuration.
package deploy
