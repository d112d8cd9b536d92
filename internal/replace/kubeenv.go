package replace

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/problem"
	"github.com/pmk-sched/pmk-sched/internal/staticpod"
)

// envFile holds the settings from which PMK's node agent makes the manifest; it adds
// the flags in SCHEDULER_FLAGS, which commas separate, to the scheduler's command
// (platform9/nodelet, pf9-kube/master_utils.sh).
const envFile = "/etc/pf9/kube.env"

// envChange is a change of the node agent's settings.
type envChange struct{ Old, New *staticpod.File }

var schedulerFlags = regexp.MustCompile(`(?m)^(\s*(?:export\s+)?SCHEDULER_FLAGS=)("[^"\n]*"|'[^'\n]*'|[^\s"'#]*)[ \t]*\r?$`)

// readEnv returns the settings with --config pointed at the configuration; nil where
// there are none.
func readEnv(files staticpod.Files, config string) (*envChange, error) {
	old, err := files.Read(envFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text, err := withSchedulerFlag(old.Data, config)
	if err != nil {
		return nil, err
	}
	fresh := *old
	fresh.Data = text
	return &envChange{Old: old, New: &fresh}, nil
}

// withSchedulerFlag sets --config among SCHEDULER_FLAGS, and keeps every other byte.
func withSchedulerFlag(text []byte, config string) ([]byte, error) {
	found := schedulerFlags.FindAllSubmatchIndex(text, -1)
	flag := "--config=" + config
	switch len(found) {
	case 0:
		if strings.Contains(string(text), "SCHEDULER_FLAGS=") {
			return nil, problem.Invalidf("set it by hand", "%s: SCHEDULER_FLAGS is written in a way that is not understood here", envFile)
		}
		joint := ""
		if len(text) > 0 && text[len(text)-1] != '\n' {
			joint = "\n"
		}
		return fmt.Appendf(text[:len(text):len(text)], "%sexport SCHEDULER_FLAGS=%q\n", joint, flag), nil
	case 1:
	default:
		return nil, problem.Invalidf("keep one of them", "%s: SCHEDULER_FLAGS is set %d times", envFile, len(found))
	}
	from, to := found[0][4], found[0][5]
	var kept []string
	for _, word := range strings.Split(strings.Trim(string(text[from:to]), `"'`), ",") {
		if word = strings.TrimSpace(word); word != "" && !strings.HasPrefix(word, "--config=") {
			kept = append(kept, word)
		}
	}
	value := `"` + strings.Join(append(kept, flag), ",") + `"`
	return append(append(append([]byte{}, text[:from]...), value...), text[to:]...), nil
}
