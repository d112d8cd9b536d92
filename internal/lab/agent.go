//go:build linux

package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/pmk-sched/pmk-sched/versions"
)

// runAgent imitates the start of PMK's node agent: it overwrites the static pod and its
// configuration.
func (n *Node) runAgent(rules versions.Rules) error {
	files, err := n.settings(n.lab.layout(), n.config(rules))
	if err != nil {
		return err
	}
	return n.replaceFiles(files)
}

// agentSettings is the file with the user's settings of the node agent.
const agentSettings = "/etc/pf9/kube.env"

// settings returns the files of a layout that depend on the release, with the user's node agent
// settings.
func (n *Node) settings(l layout, c nodeConfig) ([]file, error) {
	text, err := os.ReadFile(filepath.Join(n.Root(), agentSettings))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the node agent's settings: %w", err)
	}
	c.schedulerFlags = schedulerFlags(string(text))
	return l.settings(c)
}

var schedulerSetting = regexp.MustCompile(`(?m)^\s*(?:export\s+)?SCHEDULER_FLAGS=("[^"\n]*"|'[^'\n]*'|[^\s"'#]*)`)

// schedulerFlags returns the flags in SCHEDULER_FLAGS, which the agent adds to the scheduler's
// command. A comma separates two flags only where the next one begins with "--": values may have
// commas (platform9/nodelet, pf9-kube/master_utils.sh, kustomize_config).
func schedulerFlags(settings string) []string {
	found := schedulerSetting.FindAllStringSubmatch(settings, -1)
	if len(found) == 0 {
		return nil
	}
	last := strings.Trim(found[len(found)-1][1], `"'`) // as in the shell that reads the file
	return strings.Fields(strings.TrimRight(strings.NewReplacer(",--", " --", ", ", " ").Replace(last), ","))
}
