package versions

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// gatesText has a line for each feature gate that kube-scheduler has had: its name, and the minor
// releases that changed it, as MINOR:STATE.
//
//go:embed gates.txt
var gatesText string

// Gate is the state of a kube-scheduler feature gate in a minor release.
type Gate struct {
	// Exists is set if kube-scheduler accepts the name.
	Exists bool
	// Default is the value without a flag. Locked is set if no other value is accepted.
	Default, Locked bool
}

// The states of a feature gate in gates.txt.
const (
	gateOff, gateOn             = "off", "on"
	gateLockedOff, gateLockedOn = "locked-off", "locked-on"
	gateGone                    = "-"
)

// ParseGate returns a state in gates.txt as a Gate.
func ParseGate(state string) Gate {
	return Gate{
		Exists: state != gateGone && state != "", Default: state == gateOn || state == gateLockedOn,
		Locked: state == gateLockedOff || state == gateLockedOn,
	}
}

// String returns the state as in gates.txt.
func (g Gate) String() string {
	switch {
	case !g.Exists:
		return gateGone
	case g.Locked && g.Default:
		return gateLockedOn
	case g.Locked:
		return gateLockedOff
	case g.Default:
		return gateOn
	}
	return gateOff
}

// gateHistory is a line of gates.txt: the state from each minor release on, ascending.
type gateHistory struct {
	name    string
	minors  []int
	history []Gate
}

func gates() []gateHistory {
	var all []gateHistory
	for line := range strings.Lines(gatesText) {
		fields := strings.Fields(line)
		if len(fields) < 2 || strings.HasPrefix(line, "#") {
			continue
		}
		h := gateHistory{name: fields[0]}
		for _, change := range fields[1:] {
			minor, state, _ := strings.Cut(change, ":")
			if n, err := strconv.Atoi(minor); err == nil {
				h.minors, h.history = append(h.minors, n), append(h.history, ParseGate(state))
			}
		}
		all = append(all, h)
	}
	return all
}

// at returns the state in a minor release, and the last minor release that has the gate if the gate
// is gone.
func (h gateHistory) at(minor int) (now Gate, last int) {
	for i, from := range h.minors {
		if from > minor {
			break
		}
		now = h.history[i]
		if !now.Exists {
			last = from - 1
		}
	}
	return now, last
}

// Gates returns the feature gates that a release's kube-scheduler accepts, or that of the closest
// release in the table (pkg/features/kube_features.go and the modules that it uses).
func (r Release) Gates() map[string]Gate {
	found := map[string]Gate{}
	for _, h := range gates() {
		if now, _ := h.at(r.nearest()); now.Exists {
			found[h.name] = now
		}
	}
	return found
}

// FitGates returns the value of --feature-gates without the gates that a release does not have or
// locks to the given value, with a note for each. A gate that the release locks to the other value
// is an *Error. Names that no release has are kept: kube-scheduler reports them.
func FitGates(value string, r Release) (fitting string, notes []string, err error) {
	all := gates()
	var kept []string
	for _, setting := range strings.Split(value, ",") {
		name, text, _ := strings.Cut(strings.TrimSpace(setting), "=")
		i := slices.IndexFunc(all, func(h gateHistory) bool { return h.name == name })
		wanted, invalid := strconv.ParseBool(text)
		if i < 0 || invalid != nil {
			kept = append(kept, setting)
			continue
		}
		now, last := all[i].at(r.nearest())
		switch {
		case now.Locked && now.Default != wanted:
			return "", nil, &Error{
				Message: fmt.Sprintf("feature gate %s=%v cannot be set: %s locks it to %v", name, wanted, r, now.Default),
				Try:     "remove it from --feature-gates (spec.args, or the manifest of the default scheduler) if that is acceptable",
			}
		case now.Locked:
			notes = append(notes, fmt.Sprintf("feature gate %s=%v left out: %s locks it to this value", name, wanted, r))
		case !now.Exists && last > 0:
			was, _ := all[i].at(last)
			notes = append(notes, fmt.Sprintf("feature gate %s=%v left out: %s does not have it; %s, the last minor release "+
				"with it, has the default %v", name, wanted, r, Release{Major: 1, Minor: last}.MinorString(), was.Default))
		case !now.Exists:
			notes = append(notes, fmt.Sprintf("feature gate %s=%v left out: %s does not have it yet", name, wanted, r))
		default:
			kept = append(kept, setting)
		}
	}
	return strings.Join(kept, ","), notes, nil
}
