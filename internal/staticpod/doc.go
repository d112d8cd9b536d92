// Package staticpod changes the one container of a static pod's manifest that
// runs the scheduler, and brings the old manifest back.
//
// [Parse] reads a manifest and [Manifest.Apply] edits it as text: every byte that
// is not part of the [Change] stays, comments too, and the result is decoded
// strictly and compared with the old pod before anybody sees it. [Swap] puts it in
// place in one rename, in the way that a kubelet survives. [Backup] keeps what was
// there, with a journal that is written before every step, so that a run that was
// killed at any point can be gone on with or taken back. [Watch] waits until the
// kubelet runs what the manifest says.
//
// Paths are those of the node; where they are for this process is told by the
// caller.
package staticpod
