// Command pmk-sched installs a custom kube-scheduler on a running Kubernetes cluster: it inspects
// the cluster, builds the kube-scheduler of exactly its release, packs it on busybox, deploys it
// alongside the default scheduler or in place of it, and verifies that it schedules.
package main

import (
	"context"
	"os"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/artifact/sandbox"
)

func main() {
	if sandbox.Entering(os.Args) { // this process is to become a program of an image
		os.Exit(sandbox.Enter(os.Args))
	}
	os.Exit(run(command.Interruptible(context.Background()), os.Args, os.Stdin, os.Stdout, os.Stderr))
}
