// Command pmk-sched puts a custom kube-scheduler on a Kubernetes cluster that
// already runs: it looks at the cluster, builds the kube-scheduler of exactly
// that release, packs it on busybox, deploys it beside the default scheduler
// and proves that it schedules.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr))
}
