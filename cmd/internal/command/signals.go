package command

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Interruptible returns a context that ends when the process is asked to stop: by Ctrl-C (SIGINT),
// by SIGTERM, or because its terminal was closed (SIGHUP). The command then undoes its unfinished
// changes.
//
// A second SIGINT or SIGTERM ends the process at once, without the undo. SIGHUP never does, in any
// number: a session that ends sends one from the kernel, one from the shell and often a SIGTERM
// from the service manager. A signal that was ignored when the process started, as nohup and shells
// do for jobs in the background, stays ignored.
//
// A closed pipe does not end the process either: writes to it fail, see [Output].
func Interruptible(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	// Notify, not Ignore: programs that are started would inherit an ignored SIGPIPE.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	received := make(chan os.Signal, 1)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(received, s)
		}
	}
	go func() {
		for s := range received {
			if s != syscall.SIGHUP {
				signal.Reset(os.Interrupt, syscall.SIGTERM)
			}
			cancel()
		}
	}()
	return ctx
}
