// Package staticpod changes the scheduler container in the manifest of a static pod, and restores
// the original manifest.
//
// [Parse] reads a manifest, and [Manifest.Apply] edits it as text: every byte outside the [Change]
// stays, comments included. The result is decoded strictly and compared with the old pod. [Swapper]
// replaces the file in one rename, in a way that the kubelet handles. [Backup] keeps the previous
// state with a journal that is written before every step, so that a run that was killed at any
// point can be resumed or reverted. [Watch] waits until the kubelet runs the manifest.
//
// All paths are paths on the node. [Files] maps them to paths of this process.
package staticpod
