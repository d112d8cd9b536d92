// Command pmk-sched installs a custom kube-scheduler on a running Kubernetes cluster: it inspects the cluster, builds the
// kube-scheduler of exactly its release, packs it on busybox, deploys it alongside the default scheduler or in place of it,
// and verifies that it schedules.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/pmk-sched/pmk-sched/internal/sandbox"
)

func main() {
	if sandbox.Entering(os.Args) { // this process is to become a program of an image
		os.Exit(sandbox.Enter(os.Args))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr))
}
