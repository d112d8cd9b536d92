package kubescheduler

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// Configuration is a scheduler's configuration.
type Configuration struct {
	YAML []byte
	// Args are its flags, without the flags for the process's files and ports. Profiles are its
	// profiles' names.
	Args, Profiles []string
	// Notes are differences from the scheduler that a deployment runs.
	Notes []string
	// Services are the addresses of the extenders that the simulation itself runs.
	Services []string
}

// Set sets a field in the configuration.
func (c *Configuration) Set(field string, value any) error {
	var read map[string]any
	err := yaml.Unmarshal(c.YAML, &read)
	if err == nil {
		read[field] = value
		c.YAML, err = yaml.Marshal(read)
	}
	if err != nil {
		return fmt.Errorf("set %s in the configuration: %w", field, err)
	}
	return nil
}

// Configure renders a deployment's configuration and flags for a process on this machine: with the
// path to its kubeconfig, without leader election and without a pod's files and addresses.
// insecurePort is a free port, for releases that need one. The deployment's extenders get an
// address that refuses connections.
func (s *Scheduler) Configure(on *session.Session, kubeconfig string, insecurePort int) (*Configuration, error) {
	request := s.Request.Configuration
	request.Release, request.SchedulerName, request.Enable = s.Release, s.Request.Name, s.Plugins
	request.LeaderElect, request.InsecurePort = false, insecurePort
	request.Kubeconfig = kubeconfig
	if request.Policy {
		if _, err := request.Render(); err != nil { // a deployment refuses the same
			return nil, err
		}
		request.Policy = false
	}
	request.Extenders = slices.Concat(request.Extenders, unreachable(s.Request.Deployed))
	rendered, err := request.Render()
	if err != nil {
		return nil, err
	}
	notes, warnings := profiles.SplitNotes(rendered.Notes, request.SourceName)
	for _, note := range notes {
		on.Note(note)
	}
	for _, warning := range warnings {
		on.Warn(warning)
	}
	summary, ok := profiles.Summarize(rendered.YAML)
	if !ok {
		return nil, fmt.Errorf("read rendered configuration of %s: it is not a KubeSchedulerConfiguration", s.Request.Name)
	}
	c := &Configuration{YAML: rendered.YAML, Profiles: summary.Profiles, Notes: s.notes()}
	if err := c.Set("leaderElection", map[string]any{"leaderElect": false}); err != nil {
		return nil, err
	}
	return c, c.addArgs(on, s, rendered.Args)
}

// notes are the request's fields that are not simulated.
func (s *Scheduler) notes() []string {
	var notes []string
	if unused := s.Request.Unused; len(unused) > 0 {
		notes = append(notes, "not simulated, because they describe the image and the pods of the scheduler: "+
			strings.Join(unused, ", "))
	}
	if s.Request.Configuration.Policy {
		notes = append(notes, "spec.configuration.policyConfigMap: the Policy is simulated as the equivalent configuration")
	}
	return notes
}

// addArgs adds the configuration's and the user's flags, except for flags about a pod's files and
// addresses, and about the log and metrics that a simulation reads.
func (c *Configuration) addArgs(on *session.Session, s *Scheduler, configured []string) error {
	line := profiles.CommandLine{Release: s.Release, Given: s.Request.Args}
	if _, err := line.Flags(); err != nil { // a deployment refuses the same
		return err
	}
	for _, warning := range line.Warnings() {
		on.Warn(warning)
	}
	line.Given, line.Configured = nil, configured
	var left []string
	for _, arg := range s.Request.Args {
		flag, err := profiles.ParseFlag(arg)
		if err != nil {
			return err
		}
		if ofPod(flag.Name) {
			left = append(left, "--"+flag.Name)
			continue
		}
		line.Given = append(line.Given, arg)
	}
	if len(left) > 0 {
		c.Notes = append(c.Notes, "flags of spec.args that are not simulated, because they are about the files, the addresses, "+
			"the log or the metrics of the scheduler's pod: "+strings.Join(left, ", "))
	}
	var err error
	c.Args, err = line.Flags()
	return err
}

// ofPod reports whether a kube-scheduler flag is about the process's files, addresses, log or
// metrics. It does not change a decision.
func ofPod(flag string) bool {
	for _, prefix := range []string{"tls-", "log-", "logging-", "requestheader-"} {
		if strings.HasPrefix(flag, prefix) {
			return true
		}
	}
	return slices.Contains([]string{
		"address", "port", "bind-address", "permit-address-sharing", "permit-port-sharing", "cert-dir", "client-ca-file",
		"authorization-always-allow-paths", "allow-metric-labels", "allow-metric-labels-manifest", "disabled-metrics",
		"v", "vmodule", "logtostderr", "alsologtostderr", "stderrthreshold", "one-output", "add-dir-header",
		"skip-headers", "skip-log-headers",
	}, flag)
}

// SetFlags sets the flags to lists of flags, in which a later one overrides an earlier one.
func (c *Configuration) SetFlags(lists ...[]string) error {
	var all []string
	for _, arg := range slices.Concat(lists...) {
		flag, err := profiles.ParseFlag(arg)
		if err != nil {
			return err
		}
		all = profiles.SetFlag(all, flag)
	}
	c.Args = all
	return nil
}
