package profiles_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// maker generates random documents from known fields.
type maker struct{ *rand.Rand }

func (m maker) one(of ...string) string { return of[m.IntN(len(of))] }
func (m maker) chance(n int) bool       { return m.IntN(n) == 0 }

var everyPoint = []string{
	"preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit", "preBind",
	"bind",
	"postBind", "multiPoint", "placementScore", "podGroupPostFilter",
}

var everyName = []string{
	"PrioritySort", "NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
	"VolumeRestrictions", "EBSLimits",
	"NodeVolumeLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread", "InterPodAffinity", "DefaultPreemption",
	"ImageLocality",
	"NodeResourcesBalancedAllocation", "DefaultBinder", "SchedulingGates", "NodeResourcesLeastAllocated",
	"NodeResourcesMostAllocated",
	"RequestedToCapacityRatio", "NodePreferAvoidPods", "SelectorSpread", "CinderLimits", "NodeLabel", "ServiceAffinity",
	"DynamicResources",
	"NodeDeclaredFeatures", "GangScheduling", extraName, "Foreign",
}

type object = map[string]any

func (m maker) list(most int, make func() any) []any {
	made := []any{}
	for range m.IntN(most + 1) {
		made = append(made, make())
	}
	return made
}

func (m maker) plugins() object {
	sets := object{}
	for range m.IntN(6) {
		set := object{}
		if !m.chance(4) {
			set["enabled"] = m.list(4, func() any {
				e := object{"name": m.one(everyName...)}
				if m.chance(2) {
					e["weight"] = m.IntN(9)
				}
				return e
			})
		}
		if m.chance(2) {
			set["disabled"] = m.list(4, func() any { return object{"name": m.one(append(everyName, "*", "*", "*")...)} })
		}
		sets[m.one(everyPoint...)] = set
	}
	return sets
}

func (m maker) resources() []any {
	return m.list(3, func() any {
		r := object{"name": m.one("cpu", "memory", "example.com/x")}
		if m.chance(2) {
			r["weight"] = m.IntN(4)
		}
		return r
	})
}

func (m maker) shape() []any {
	return m.list(3, func() any { return object{"utilization": m.IntN(101), "score": m.IntN(11)} })
}

func (m maker) config() any {
	args := object{}
	name := m.one("NodeResourcesFit", "NodeResourcesFit", "PodTopologySpread", "NodeLabel", "NodeAffinity",
		"NodeResourcesMostAllocated", "RequestedToCapacityRatio", "InterPodAffinity", "VolumeBinding",
		"NodeResourcesBalancedAllocation", "DynamicResources", extraName)
	switch name {
	case "NodeResourcesFit":
		if !m.chance(4) {
			args["scoringStrategy"] = object{"type": m.one("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"),
				"resources": m.resources(), "requestedToCapacityRatio": object{"shape": m.shape()}}
		}
	case "PodTopologySpread":
		if m.chance(2) {
			args["defaultingType"] = m.one("List", "System")
		}
		args["defaultConstraints"] = m.list(2, func() any {
			c := object{"maxSkew": 1, "topologyKey": m.one("a", "y"), "whenUnsatisfiable": "ScheduleAnyway"}
			if m.chance(4) {
				c["minDomains"] = 2
			}
			return c
		})
	case "NodeLabel":
		args[m.one("presentLabels", "absentLabels", "presentLabelsPreference")] = []any{m.one("y", "pool")}
	case "NodeAffinity":
		args["addedAffinity"] = object{"requiredDuringSchedulingIgnoredDuringExecution": object{"nodeSelectorTerms": m.list(2,
			func() any { return object{} })}}
	case "NodeResourcesMostAllocated", "NodeResourcesBalancedAllocation":
		args["resources"] = m.resources()
	case "RequestedToCapacityRatio":
		args["shape"], args["resources"] = m.shape(), m.resources()
	case "InterPodAffinity":
		args[m.one("hardPodAffinityWeight", "ignorePreferredTermsOfExistingPods")] = 1
	}
	return object{"name": name, "args": args}
}

func (m maker) configuration() object {
	doc := object{"apiVersion": "kubescheduler.config.k8s.io/" + m.one("v1beta1", "v1beta2", "v1beta3", "v1"),
		"kind": "KubeSchedulerConfiguration"}
	doc["profiles"] = m.list(2, func() any {
		p := object{"schedulerName": m.one("a", "b")}
		if !m.chance(4) {
			p["plugins"] = m.plugins()
		}
		if m.chance(2) {
			p["pluginConfig"] = m.list(3, m.config)
		}
		if m.chance(6) {
			p["percentageOfNodesToScore"] = 5
		}
		return p
	})
	for _, name := range []string{"healthzBindAddress", "metricsBindAddress"} {
		if m.chance(3) {
			doc[name] = m.one("", "0.0.0.0:0", "127.0.0.1:1", ":10251", "10.0.0.1", "[::1]:7")
		}
	}
	if m.chance(2) {
		doc["leaderElection"] = object{"resourceLock": m.one("", "leases", "endpoints", "configmapsleases"),
			"leaderElect": m.chance(2)}
	}
	if m.chance(6) {
		doc["delayCacheUntilActive"] = true
	}
	return doc
}

func (m maker) policy() object {
	doc := object{"apiVersion": "v1", "kind": "Policy"}
	if !m.chance(4) {
		doc["predicates"] = m.list(6, func() any {
			if m.chance(4) {
				return object{"name": "own",
					"argument": object{"labelsPresence": object{"labels": []any{m.one("y", "z")}, "presence": m.chance(2)}}}
			}
			return object{"name": m.one("GeneralPredicates", "HostName", "PodFitsPorts", "MatchNodeSelector", "NoDiskConflict",
				"MaxEBSVolumeCount", "MaxCinderVolumeCount", "CheckVolumeBinding", "NoVolumeZoneConflict", "EvenPodsSpread",
				"CheckServiceAffinity")}
		})
	}
	if !m.chance(4) {
		doc["priorities"] = m.list(6, func() any {
			p := object{"name": m.one("SelectorSpreadPriority", "ServiceSpreadingPriority", "EvenPodsSpreadPriority",
				"LeastRequestedPriority", "MostRequestedPriority", "NodePreferAvoidPodsPriority", "EqualPriority",
				"InterPodAffinityPriority", "TaintTolerationPriority"), "weight": 1 + m.IntN(4)}
			switch m.IntN(8) {
			case 0:
				p["name"], p["argument"] = "own", object{"labelPreference": object{"label": "y", "presence": m.chance(2)}}
			case 1:
				p["name"], p["argument"] = "own", object{"requestedToCapacityRatioArguments": object{"shape": m.shape()}}
			}
			return p
		})
	}
	doc["hardPodAffinitySymmetricWeight"], doc["alwaysCheckAllPredicates"] = m.IntN(3), m.chance(4)
	doc["extenders"] = m.list(1, func() any {
		return object{"urlPrefix": "http://x", "FilterVerb": "f", "httpTimeout": m.IntN(1 << 40), "enableHttps": m.chance(2)}
	})
	return doc
}

func (m maker) document(t *testing.T) []byte {
	t.Helper()
	doc := m.configuration()
	if m.chance(4) {
		doc = m.policy()
	}
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Random documents, converted with losses, parse again and convert to themselves without losses, or
// are an *Error.
func FuzzConvertGenerated(f *testing.F) {
	for seed := range uint64(100) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		m := maker{rand.New(rand.NewPCG(seed, 7))} //nolint:gosec // nothing is secret here
		source := m.document(t)
		known := versions.Releases()
		for range 3 {
			release := known[m.IntN(len(known))]
			rules, err := versions.Select(release)
			if err != nil {
				t.Fatal(err)
			}
			for _, api := range rules.Accepted {
				r := profiles.ConvertRequest{API: api, Release: release, Source: source, SourceName: "f.yaml",
					Plugins: []string{extraName}, Lossy: true}
				once, err := profiles.Convert(r)
				var wrong *profiles.Error
				if errors.As(err, &wrong) {
					continue
				} else if err != nil {
					t.Fatal(err)
				}
				r.Source, r.Lossy = once.YAML, false
				twice, err := profiles.Convert(r)
				if err != nil {
					t.Fatalf("%s for %s: the result is refused: %v\n%s\nof\n%s", api, release, err, once.YAML, source)
				}
				if string(twice.YAML) != string(once.YAML) {
					t.Fatalf("%s for %s: converted again it changes:\n%s\n%s\nof\n%s", api, release, once.YAML, twice.YAML, source)
				}
			}
		}
	})
}
