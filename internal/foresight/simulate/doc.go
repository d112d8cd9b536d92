// Package simulate runs a scheduler on the pods of a snapshot: it starts the API server of a
// release without controllers and kubelets, loads the snapshot, runs the scheduler itself, and
// reads where the pods went.
//
// Package scenario decides which pods are scheduled, load creates the objects, kubelet replaces
// kubelets and volume controllers, and report contains the result. [Explain] explains one pod:
// package decision evaluates the scheduler's decision about each node, and recorder observes it.
// [Measure] measures the speed of a scheduler, which package bench evaluates.
package simulate
