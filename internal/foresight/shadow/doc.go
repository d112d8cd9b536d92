// Package shadow runs a scheduler against a live cluster without changing anything there, and
// compares its decisions with the decisions of the scheduler that binds the pods.
//
// The scheduler talks to a proxy on loopback. The proxy passes reads and watches to the API server,
// and answers everything else itself, so that no write leaves this machine. It hides the pods that
// wait for a node, and shows each of them at the moment when the observed scheduler has decided:
// everything before that moment is as that scheduler has left it. The proxy holds back later events
// until the shadow has decided too, makes it forget its decision, and continues with the real
// decision.
package shadow
