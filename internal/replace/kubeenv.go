package replace

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
)

// EnvChange is a change to the settings from which PMK's node agent makes the manifest. It adds the
// flags in SCHEDULER_FLAGS, separated by commas, to the scheduler's command (platform9/nodelet,
// pf9-kube/master_utils.sh).
type EnvChange struct{ Old, New *staticpod.File }

var schedulerFlags = regexp.MustCompile(
	`(?m)^(\s*(?:export\s+)?SCHEDULER_FLAGS=)("(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s"'#\\]*)[ \t]*\r?$`)

// readEnv returns the change to the settings in file that adds --config=config to the scheduler's
// flags. It returns nil if the file does not exist.
func readEnv(files staticpod.Files, file, config string) (*EnvChange, error) {
	old, err := files.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text, err := withSchedulerFlag(file, old.Data, config)
	if err != nil {
		return nil, err
	}
	return &EnvChange{Old: old, New: withData(old, text)}, nil
}

// withSchedulerFlag sets --config among SCHEDULER_FLAGS, and keeps every other byte.
func withSchedulerFlag(file string, text []byte, config string) ([]byte, error) {
	found := schedulerFlags.FindAllSubmatchIndex(text, -1)
	flag := "--config=" + config
	switch len(found) {
	case 0:
		if strings.Contains(string(text), "SCHEDULER_FLAGS=") {
			return nil, problem.Invalidf("set it by hand", "%s: unknown syntax of SCHEDULER_FLAGS", file)
		}
		joint := ""
		if len(text) > 0 && text[len(text)-1] != '\n' {
			joint = "\n"
		}
		return fmt.Appendf(slices.Clip(text), "%sexport SCHEDULER_FLAGS=%q\n", joint, flag), nil
	case 1:
	default:
		return nil, problem.Invalidf("keep one of them", "%s: SCHEDULER_FLAGS is set %d times", file, len(found))
	}
	from, to := found[0][4], found[0][5]
	value, quote := string(text[from:to]), `"`
	if strings.HasPrefix(value, `"`) || strings.HasPrefix(value, "'") {
		// In the other quotes a shell would read another value.
		value, quote = value[1:len(value)-1], value[:1]
	}
	var kept []string
	for _, word := range strings.Split(value, ",") {
		if word = strings.TrimSpace(word); word != "" && !strings.HasPrefix(word, "--config=") {
			kept = append(kept, word)
		}
	}
	value = quote + strings.Join(append(kept, flag), ",") + quote
	return slices.Concat(text[:from], []byte(value), text[to:]), nil
}

// withData returns a file with another content.
func withData(file *staticpod.File, text []byte) *staticpod.File {
	changed := *file
	changed.Data = text
	return &changed
}
