// Command pmk-extender serves portable plugins to schedulers over HTTP, as a scheduler extender.
//
// `pmk-sched build extender` packs it into an image, with the user's plugins in addition to the
// bundled ones. It generates plugins.go.
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
	os.Exit(program{stdout: os.Stdout, stderr: os.Stderr, drain: drainTime}.run(ctx, os.Args[1:]))
}
