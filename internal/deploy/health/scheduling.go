package health

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Scheduling is the sum of the counters of a scheduler's replicas since they started.
type Scheduling struct {
	// Scheduled, Unschedulable and Errors are attempts by result.
	Scheduled     int64 `json:"scheduled"`
	Unschedulable int64 `json:"unschedulable"`
	Errors        int64 `json:"errors"`
	// P50 and P99 are the latency in seconds of the attempts that scheduled a pod. They are 0
	// without such attempts. They are interpolated between the bounds of a histogram, and never
	// above its last one.
	P50 float64 `json:"p50Seconds"`
	P99 float64 `json:"p99Seconds"`
	// Leading is the number of replicas that report themselves as leader.
	Leading int `json:"leading"`
	// Replicas is the number of replicas whose metrics were read. Unknown is the reason why the
	// metrics of other replicas were not read.
	Replicas int    `json:"replicas"`
	Unknown  string `json:"unknown,omitempty"`
}

const (
	attemptsMetric = "scheduler_schedule_attempts_total"
	leaderMetric   = "leader_election_master_status"
)

// ReadScheduling sums up the metrics of replicas in the text format of Prometheus. duration is the name of the histogram of
// scheduling attempts in their release.
func ReadScheduling(texts []string, duration string) *Scheduling {
	s := &Scheduling{Replicas: len(texts)}
	buckets := map[float64]float64{}
	for _, text := range texts {
		leads := false
		for line := range strings.Lines(text) {
			name, labels, value, ok := sample(line)
			if !ok {
				continue
			}
			switch name {
			case attemptsMetric:
				s.count(labels["result"], value)
			case duration + "_bucket":
				if bound, err := strconv.ParseFloat(labels["le"], 64); err == nil && cmp.Or(labels["result"], "scheduled") == "scheduled" {
					buckets[bound] += value
				}
			case leaderMetric:
				leads = leads || value == 1
			}
		}
		if leads {
			s.Leading++
		}
	}
	s.P50, s.P99 = quantile(buckets, 0.5), quantile(buckets, 0.99)
	return s
}

func (s *Scheduling) count(result string, value float64) {
	switch result {
	case "scheduled":
		s.Scheduled += int64(value)
	case "unschedulable":
		s.Unschedulable += int64(value)
	case "error":
		s.Errors += int64(value)
	}
}

// sample reads one line: `name{label="value"} 1`.
func sample(line string) (name string, labels map[string]string, value float64, ok bool) {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' {
		return "", nil, 0, false
	}
	rest := line
	labels = map[string]string{}
	if open := strings.IndexByte(line, '{'); open >= 0 {
		name, rest = line[:open], line[open+1:]
		for !strings.HasPrefix(rest, "}") {
			key, after, found := strings.Cut(strings.TrimPrefix(rest, ","), "=")
			text, err := strconv.QuotedPrefix(after)
			if !found || err != nil {
				return "", nil, 0, false
			}
			if labels[strings.TrimSpace(key)], err = strconv.Unquote(text); err != nil {
				return "", nil, 0, false
			}
			rest = after[len(text):]
		}
		rest = rest[1:]
	} else {
		name, rest, _ = strings.Cut(line, " ")
	}
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ") // a timestamp may follow
	value, err := strconv.ParseFloat(number, 64)
	return name, labels, value, err == nil
}

// quantile interpolates in cumulative buckets, as histogram_quantile of Prometheus does.
func quantile(buckets map[float64]float64, q float64) float64 {
	var bounds []float64
	for bound := range buckets {
		bounds = append(bounds, bound)
	}
	slices.Sort(bounds)
	if len(bounds) == 0 || buckets[bounds[len(bounds)-1]] == 0 {
		return 0
	}
	rank := q * buckets[bounds[len(bounds)-1]]
	lower, below := 0.0, 0.0
	for _, bound := range bounds {
		if buckets[bound] < rank {
			lower, below = bound, buckets[bound]
			continue
		}
		if math.IsInf(bound, 1) {
			return lower
		}
		return lower + (bound-lower)*(rank-below)/(buckets[bound]-below)
	}
	return lower
}
