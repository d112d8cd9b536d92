package coscheduling

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Values of Arguments.PodGroups.
const (
	// PodGroupsAuto reads PodGroups if their CustomResourceDefinition is installed.
	PodGroupsAuto = "Auto"
	// PodGroupsIgnore reads labels only.
	PodGroupsIgnore = "Ignore"
)

// Arguments are the plugin's arguments in the configuration. Durations are strings such as "30s".
type Arguments struct {
	// GroupLabel is the pod label with the group's name, "scheduling.x-k8s.io/pod-group" by default. A
	// group is in one namespace.
	GroupLabel string `json:"groupLabel,omitempty"`
	// MinMemberLabel is the pod label with the group's size, "pmk-sched.io/min-member" by default: so
	// many pods are placed together, or none. It is not read for a group that has a PodGroup.
	MinMemberLabel string `json:"minMemberLabel,omitempty"`
	// PodGroups selects whether sizes are read from PodGroups of scheduling.x-k8s.io/v1alpha1: Auto
	// (the default), if their CustomResourceDefinition is installed, or Ignore.
	PodGroups string `json:"podGroups,omitempty"`
	// Timeout is the time for which a group's first pods keep their room on nodes for its other pods,
	// "1m" by default, at most "14m". A PodGroup's scheduleTimeoutSeconds takes precedence. Other
	// groups leave room for the pods without a node no longer than Timeout.
	Timeout string `json:"timeout,omitempty"`
	// Backoff is the delay before a group that could not be placed is retried.
	Backoff Backoff `json:"backoff,omitempty"`
}

// Backoff is a delay that doubles with every failure. It ends early when the cluster has more free
// room.
type Backoff struct {
	// Initial is the delay after the first failure, "5s" by default.
	Initial string `json:"initial,omitempty"`
	// Max is the longest delay, "1m" by default.
	Max string `json:"max,omitempty"`
}

type settings struct {
	Arguments
	timeout, initial, max time.Duration
}

// longestTimeout leaves the scheduler, which ends any wait after 15 minutes, a minute more than the
// plugin.
const longestTimeout = 14 * time.Minute

func decode(args scheduler.Arguments) (*settings, error) {
	s := &settings{Arguments: Arguments{
		GroupLabel: "scheduling.x-k8s.io/pod-group", MinMemberLabel: "pmk-sched.io/min-member", PodGroups: PodGroupsAuto,
		Timeout: "1m", Backoff: Backoff{Initial: "5s", Max: "1m"},
	}}
	if err := args.Decode(&s.Arguments); err != nil {
		return nil, err
	}
	for _, label := range []struct{ field, key string }{{"groupLabel", s.GroupLabel}, {
		"minMemberLabel", s.MinMemberLabel}} {
		if wrong := validation.IsQualifiedName(label.key); len(wrong) > 0 {
			return nil, fmt.Errorf("%s: %q is not a label key: %s", label.field, label.key, strings.Join(wrong, "; "))
		}
	}
	if s.GroupLabel == s.MinMemberLabel {
		return nil, fmt.Errorf("minMemberLabel: must differ from groupLabel")
	}
	if s.PodGroups != PodGroupsAuto && s.PodGroups != PodGroupsIgnore {
		return nil, fmt.Errorf("podGroups: %q is neither %s nor %s", s.PodGroups, PodGroupsAuto, PodGroupsIgnore)
	}
	for _, d := range []struct {
		field, text string
		most        time.Duration
		into        *time.Duration
	}{
		{"timeout", s.Timeout, longestTimeout, &s.timeout},
		{"backoff.initial", s.Backoff.Initial, time.Hour, &s.initial},
		{"backoff.max", s.Backoff.Max, time.Hour, &s.max},
	} {
		parsed, err := time.ParseDuration(d.text)
		if err != nil {
			return nil, fmt.Errorf(`%s: %q is not a duration such as "30s"`, d.field, d.text)
		}
		if parsed < time.Second || parsed > d.most {
			return nil, fmt.Errorf("%s: %s must be between 1s and %s", d.field, d.text, d.most)
		}
		*d.into = parsed
	}
	if s.max < s.initial {
		return nil, fmt.Errorf("backoff.max: %s must not be shorter than backoff.initial, %s", s.Backoff.Max,
			s.Backoff.Initial)
	}
	return s, nil
}

// backoff returns the delay after a number of failures.
func (s *settings) backoff(failures int) time.Duration {
	delay := s.initial
	for i := 1; i < failures && delay < s.max; i++ {
		delay *= 2
	}
	if delay > s.max {
		return s.max
	}
	return delay
}
