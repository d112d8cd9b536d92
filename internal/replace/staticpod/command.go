package staticpod

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/versions"
)

// logRunners are the names of the program that runs another one and writes its output to a file
// (k8s.io/component-base/logs/kube-log-runner). It is in upstream's images.
var logRunners = []string{"go-runner", "kube-log-runner"}

// start is the place at which a container's command and arguments, as one list, name its program.
type start struct {
	words []string
	// program is the program's index; -1 if the image's entrypoint names it.
	program int
}

// startOf finds the program in a container's command. It fails if that is another program than the
// expected one, runs in a shell, or is unknown.
func startOf(c *corev1.Container, program string) (start, error) {
	s := start{words: slices.Concat(c.Command, c.Args), program: -1}
	if len(s.words) == 0 {
		return s, fmt.Errorf("container %s has neither a command nor arguments: its flags cannot be changed", c.Name)
	}
	first := path.Base(s.words[0])
	switch {
	case first == program:
		s.program = 0
	case slices.Contains(logRunners, first):
		if i := wrapped(s.words); i > 0 && path.Base(s.words[i]) == program {
			s.program = i
		}
	case len(c.Command) == 0:
		return s, nil
	}
	if s.program < 0 {
		return s, fmt.Errorf("container %s runs %q, not %s itself: its flags cannot be changed", c.Name, s.words[0], program)
	}
	return s, nil
}

// wrapped returns the index of the program that a log runner starts: the first word after its own
// flags. It is 0 if there is none.
func wrapped(words []string) int {
	for i := 1; i < len(words); i++ {
		name, _, hasValue := strings.Cut(strings.TrimLeft(words[i], "-"), "=")
		switch {
		case words[i] == "--" && i+1 < len(words):
			return i + 1
		case !strings.HasPrefix(words[i], "-"):
			return i
		case !hasValue && name != "also-stdout" && name != "redirect-stderr":
			i++ // the value is the next word
		}
	}
	return 0
}

// Words returns a container program's flags: the words after it in the command and the arguments.
// It fails if the program is not the expected one or runs in a shell.
func Words(c *corev1.Container, program string) ([]string, error) {
	s, err := startOf(c, program)
	if err != nil {
		return nil, err
	}
	return s.words[s.program+1:], nil
}

// Programs returns the programs that a container's command names: a wrapper that writes a log file,
// if there is one, and the expected program. There are none if the image's entrypoint names it, or
// if the container runs something else.
func Programs(c *corev1.Container, program string) []string {
	s, err := startOf(c, program)
	switch {
	case err != nil || s.program < 0:
		return nil
	case s.program == 0:
		return s.words[:1]
	default:
		return []string{s.words[0], s.words[s.program]}
	}
}

// place is a word's index in a list, or the index at which to insert it.
type place struct {
	index   int
	there   bool
	command bool // the list is the command, not the arguments
}

// flagPlace finds the last occurrence of the flag, or the place after the program.
func (c Change) flagPlace(container *corev1.Container) (*[]string, place, error) {
	s, err := startOf(container, c.Program)
	if err != nil {
		return nil, place{}, err
	}
	in := len(container.Command)
	for i := len(s.words) - 1; i > s.program; i-- {
		name, _, hasValue := strings.Cut(s.words[i], "=")
		switch {
		case versions.FlagName(name) != c.flag():
		case !hasValue:
			return nil, place{}, fmt.Errorf("%s and its value are separate words: write %[1]s=VALUE", name)
		case i < in:
			return &container.Command, place{index: i, there: true, command: true}, nil
		default:
			return &container.Args, place{index: i - in, there: true}, nil
		}
	}
	if len(container.Args) > 0 {
		return &container.Args, place{index: max(0, s.program+1-in)}, nil
	}
	return &container.Command, place{index: s.program + 1, command: true}, nil
}
