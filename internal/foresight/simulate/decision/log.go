package decision

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// Scores are the scores in one scheduling cycle, by node.
type Scores struct {
	// Total are the sums that the scheduler compares.
	Total map[string]int64
	// Plugins are each plugin's scores, multiplied by its weight.
	Plugins map[string]map[string]int64
	// Extenders are each extender's scores as it returned them.
	Extenders map[string]map[string]int64
}

func newScores() *Scores {
	return &Scores{Total: map[string]int64{}, Plugins: map[string]map[string]int64{},
		Extenders: map[string]map[string]int64{}}
}

func set(in map[string]map[string]int64, by, node string, score int64) {
	if in[by] == nil {
		in[by] = map[string]int64{}
	}
	in[by][node] = score
}

var (
	// logPrefix is the prefix that klog writes before a message.
	logPrefix = regexp.MustCompile(`^[IWEF]\d{4} [\d:.]+ +\d+ [^\]]+\] `)
	// logField is a field in a structured message.
	logField = regexp.MustCompile(` (\w+)=("(?:[^"\\]|\\.)*"|\S+)`)
	// The messages at 1.20: prioritizeNodes in pkg/scheduler/core/generic_scheduler.go.
	oldPlugin   = regexp.MustCompile(`^Plugin (\S+) scores on (\S+) => \[(.*)\]$`)
	oldNode     = regexp.MustCompile(`\{(\S+) (-?\d+)\}`)
	oldExtender = regexp.MustCompile(`^(\S+) -> (\S+): (\S+), Score: \((-?\d+)\)$`)
	oldTotal    = regexp.MustCompile(`^Host (\S+) => Score (-?\d+)$`)
)

// ParseLog reads a pod's scores from a scheduler's log at level 10. They are the scores from the
// last cycle that scored nodes, or nil if no cycle did. Structured messages are the format from
// 1.21 to 1.37 (prioritizeNodes in pkg/scheduler/schedule_one.go).
func ParseLog(log io.Reader, namespace, pod string) (*Scores, error) {
	p := logParser{key: namespace + "/" + pod, old: pod + "_" + namespace, current: newScores()}
	lines := bufio.NewReader(log) // a line of 1.20 contains the scores of all nodes
	for {
		line, err := lines.ReadString('\n')
		if at := logPrefix.FindString(line); at != "" {
			if err := p.message(strings.TrimRight(line[len(at):], "\n")); err != nil {
				return nil, fmt.Errorf("read the log of the scheduler: %w", err)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return p.finish(), nil
		case err != nil:
			return nil, fmt.Errorf("read the log of the scheduler: %w", err)
		}
	}
}

// logParser collects the scores in the current cycle and keeps the scores from the last cycle that
// had any.
type logParser struct {
	key, old      string // how new and old releases name the pod
	last, current *Scores
}

func (p *logParser) finish() *Scores {
	if len(p.current.Total) > 0 {
		p.last = p.current
	}
	p.current = newScores()
	return p.last
}

// message reads one message in the log.
func (p *logParser) message(text string) error {
	if !strings.HasPrefix(text, `"`) {
		return p.oldMessage(text)
	}
	name, fields, ok := strings.Cut(text[1:], `"`)
	if !ok {
		return nil
	}
	switch name {
	case "Attempting to schedule pod", "Plugin scored node for pod", "Extender scored node for pod",
		"Calculated node's final score for pod":
	default:
		return nil
	}
	values := map[string]string{}
	for _, f := range logField.FindAllStringSubmatch(fields, -1) {
		value := f[2]
		if unquoted, err := strconv.Unquote(value); err == nil {
			value = unquoted
		}
		values[f[1]] = value
	}
	switch {
	case values["pod"] != p.key:
		return nil
	case name == "Attempting to schedule pod":
		p.finish()
		return nil
	}
	score, err := strconv.ParseInt(values["score"], 10, 64)
	if err != nil {
		return fmt.Errorf("parse %q: %w", text, err)
	}
	switch name {
	case "Plugin scored node for pod":
		set(p.current.Plugins, values["plugin"], values["node"], score)
	case "Extender scored node for pod":
		set(p.current.Extenders, values["extender"], values["node"], score)
	default:
		p.current.Total[values["node"]] = score
	}
	return nil
}

// oldMessage reads a message at 1.20. The totals do not name the pod; they follow the scores that
// do.
func (p *logParser) oldMessage(text string) error {
	if text == "Attempting to schedule pod: "+p.key {
		p.finish()
		return nil
	}
	if m := oldPlugin.FindStringSubmatch(text); m != nil && m[2] == p.key {
		for _, n := range oldNode.FindAllStringSubmatch(m[3], -1) {
			score, err := strconv.ParseInt(n[2], 10, 64)
			if err != nil {
				return fmt.Errorf("parse %q: %w", n[0], err)
			}
			set(p.current.Plugins, m[1], n[1], score)
		}
		return nil
	}
	if m := oldExtender.FindStringSubmatch(text); m != nil && m[1] == p.old {
		score, err := strconv.ParseInt(m[4], 10, 64)
		set(p.current.Extenders, m[3], m[2], score)
		return err
	}
	if m := oldTotal.FindStringSubmatch(text); m != nil {
		score, err := strconv.ParseInt(m[2], 10, 64)
		p.current.Total[m[1]] = score
		return err
	}
	return nil
}
