// Package simulate shows what a scheduler does with the pods of a snapshot: it starts the API server of a release without controllers and
// kubelets, loads the snapshot, runs the scheduler itself, and reads where the pods went.
//
// Package scenario decides what is scheduled, load creates the objects, act replaces kubelets and volume controllers, and report has the
// result. [Explain] explains one pod: package cycle has what the scheduler decided about each node, and recorder observes it. [Measure] measures the
// speed of a scheduler, which package bench evaluates.
package simulate
