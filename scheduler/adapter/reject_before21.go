//go:build ignore

package adapter

func reject(p waitingPod, _, message string) { p.Reject(message) }
