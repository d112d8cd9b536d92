// Package sandbox runs an image's program on this machine. An image is content that other people
// wrote, so its program gets no more than it needs:
//
//   - a separate, read-only root directory with nothing in it but the program and its files;
//   - an unprivileged user without groups and capabilities, and an empty environment;
//   - a separate network with nothing but a loopback interface, and no processes but its own;
//   - limits on time, memory, files and output.
//
// [Run] starts pmk-sched itself in new namespaces, with a first argument that only [Enter] reads: a
// process can set up its own root, limits and user, but Go cannot do it between fork and exec.
// Enter does that, step by step, and then executes the program.
//
// [Start] does the same for a program that runs longer, such as the kube-scheduler of a simulation
// with plugins that the user did not choose. Such a program also reaches servers on the loopback
// interface of this machine that the caller names, and the caller reaches the program: Enter makes
// the sockets for both in the new network, and passes them to the process that started it.
//
// As root without namespaces, such as in a container, everything but the separate network and
// process IDs remains for Run, and Start fails. Another user without namespaces cannot run a
// program: it would have the user's rights.
package sandbox

import (
	"errors"
	"time"
)

// ErrUnavailable is returned when this machine cannot isolate a program.
var ErrUnavailable = errors.New("this machine cannot isolate a program of an image")

// Program is one run of a static program.
type Program struct {
	// Path of the program on this machine.
	Path string
	Args []string
	// Files are the files that it can read, by name: Path(name) is the path that it sees. Their
	// content may be confidential.
	Files map[string][]byte
	// Timeout bounds the run.
	Timeout time.Duration
}

// OutputPath is the only file that a program can write.
const OutputPath = "/" + outputName

// Path returns the path by which a program sees one of its files.
func Path(name string) string { return "/" + name }

// Result is the outcome of running a program.
type Result struct {
	// Status is its exit status; -1 if it was killed.
	Status int
	// Text is the end of its output.
	Text []byte
	// Wrote reports whether the program wrote to OutputPath.
	Wrote bool
	// TimedOut reports whether it was killed because of Program.Timeout.
	TimedOut bool
	// Shared is the reason for not separating it from this machine's network and processes. It is
	// empty if it was separated.
	Shared string
}

// Names in a program's root.
const (
	programName = "program"
	outputName  = "output"
)

// enterArgument is the hidden first argument of a process that Run starts.
const enterArgument = "__enter-sandbox"

// Entering reports whether Run started this process, whose command line is args.
func Entering(args []string) bool { return len(args) > 1 && args[1] == enterArgument }
