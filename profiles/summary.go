package profiles

import "sigs.k8s.io/yaml"

// Summary is the content of a KubeSchedulerConfiguration that other packages use.
type Summary struct {
	// Profiles are the profiles' scheduler names.
	Profiles []string
	// Extenders are the extenders' URL prefixes.
	Extenders []string
	// LeaderElect is nil if the configuration does not set it. It is then enabled.
	LeaderElect           *bool
	DelayCacheUntilActive bool
}

// Summarize reads a KubeSchedulerConfiguration of any config API, without checking it. It returns
// false for other text.
func Summarize(text []byte) (Summary, bool) {
	var c struct {
		Kind                  string `json:"kind"`
		DelayCacheUntilActive bool   `json:"delayCacheUntilActive"`
		LeaderElection        struct {
			LeaderElect *bool `json:"leaderElect"`
		} `json:"leaderElection"`
		Profiles []struct {
			SchedulerName string `json:"schedulerName"`
		} `json:"profiles"`
		Extenders []struct {
			URLPrefix string `json:"urlPrefix"`
		} `json:"extenders"`
	}
	if yaml.Unmarshal(text, &c) != nil || c.Kind != "KubeSchedulerConfiguration" {
		return Summary{}, false
	}
	s := Summary{LeaderElect: c.LeaderElection.LeaderElect, DelayCacheUntilActive: c.DelayCacheUntilActive}
	for _, p := range c.Profiles {
		s.Profiles = append(s.Profiles, p.SchedulerName)
	}
	for _, e := range c.Extenders {
		s.Extenders = append(s.Extenders, e.URLPrefix)
	}
	return s, true
}
