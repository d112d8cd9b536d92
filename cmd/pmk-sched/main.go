// Command pmk-sched installs a custom kube-scheduler on a running Kubernetes cluster: it inspects the cluster, builds the
// kube-scheduler of exactly its release, packs it on busybox, deploys it alongside the default scheduler or in place of it,
// and verifies that it schedules.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(interruptible(context.Background()), os.Args, os.Stdin, os.Stdout, os.Stderr))
}
