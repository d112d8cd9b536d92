package shadow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// pod is a pod in JSON, with its parsed fields.
type pod struct {
	fields                                map[string]any
	namespace, name, uid, scheduler, node string
	// refused is set if its scheduler has found no node, terminating if it is being deleted.
	refused, terminating bool
	// after is the cluster's version after which the shadow sees copies of the pod.
	after string
}

// decode decodes JSON and keeps numbers as they are.
func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(into)
}

func parsePod(fields map[string]any) *pod {
	metadata, spec, status := child(fields, "metadata"), child(fields, "spec"), child(fields, "status")
	p := &pod{
		fields: fields, namespace: text(metadata, "namespace"), name: text(metadata, "name"), uid: text(metadata, "uid"),
		scheduler: text(spec, "schedulerName"), node: text(spec, "nodeName"),
		after:       previousVersion(text(metadata, "resourceVersion")),
		terminating: text(metadata, "deletionTimestamp") != "",
	}
	delete(metadata, "managedFields") // half of the text, and no scheduler reads it
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if text(condition, "type") == string(corev1.PodScheduled) &&
			text(condition, "reason") == corev1.PodReasonUnschedulable {
			p.refused = text(condition, "status") == string(corev1.ConditionFalse)
		}
	}
	return p
}

func child(fields map[string]any, name string) map[string]any {
	c, _ := fields[name].(map[string]any)
	return c
}

func text(fields map[string]any, name string) string {
	s, _ := fields[name].(string)
	return s
}

// with returns a shallow copy of fields with one field changed.
func with(fields map[string]any, name string, value any) map[string]any {
	c := maps.Clone(fields)
	if c == nil {
		c = map[string]any{}
	}
	c[name] = value
	return c
}

// copied returns a copy of the pod that waits for a profile's scheduler.
func (p *pod) copied(uid, version, profile string) map[string]any {
	metadata := with(with(child(p.fields, "metadata"), "uid", uid), "resourceVersion", version)
	delete(metadata, "deletionTimestamp")
	spec := with(child(p.fields, "spec"), "schedulerName", profile)
	delete(spec, "nodeName")
	c := with(p.fields, "metadata", metadata)
	c["apiVersion"], c["kind"] = "v1", "Pod" // items of a list have neither
	c["spec"], c["status"] = spec, map[string]any{"phase": string(corev1.PodPending)}
	return c
}

// key returns namespace/name.
func (p *pod) key() string { return p.namespace + "/" + p.name }

// probe returns a pod that fits on no node, and evicts none, as of a cluster version.
func probe(version string) *pod {
	const name = "pmk-sched-shadow-probe"
	p := parsePod(map[string]any{
		"metadata": map[string]any{"namespace": "default", "name": name, "uid": name},
		"spec": map[string]any{
			"containers":   []any{map[string]any{"name": "none", "image": "none"}},
			"nodeSelector": map[string]any{"pmk-sched.io/shadow-probe": "none"},
			"priority":     0, "preemptionPolicy": "Never", "restartPolicy": "Always", "terminationGracePeriodSeconds": 0,
		},
	})
	p.after = version
	return p
}

// notObserved is the scheduler for pods that the shadow must not schedule.
const notObserved = "pmk-sched-not-observed"

// names are scheduler names: the observed one, the shadow, and the shadow's profiles.
type names struct {
	observed, shadow string
	profiles         []string
}

// profile returns the profile that schedules the observed scheduler's pods.
func (n names) profile() string {
	for _, name := range []string{n.observed, n.shadow} {
		if slices.Contains(n.profiles, name) {
			return name
		}
	}
	return n.profiles[0]
}

// prepare makes a pod one that the shadow sees: with its version, and so that it ignores a pod that
// is not observed.
func (n names) prepare(p *pod) {
	setVersion(child(p.fields, "metadata"))
	if p.scheduler != n.observed && slices.Contains(n.profiles, p.scheduler) {
		p.fields["spec"] = with(child(p.fields, "spec"), "schedulerName", notObserved)
	}
}

// placesPerVersion is the number of versions that the shadow sees for each cluster version. The
// versions in between are for copies of pods.
const placesPerVersion = 1000

// shadowVersion returns the cluster's resource version as the shadow sees it, or a version between
// it and the next one. Versions that are not numbers do not change.
func shadowVersion(version string, place int) string {
	if n, err := strconv.ParseUint(version, 10, 64); err == nil {
		return strconv.FormatUint(n*placesPerVersion+uint64(place), 10)
	}
	return version
}

// previousVersion returns the cluster version before one.
func previousVersion(version string) string {
	if n, err := strconv.ParseUint(version, 10, 64); err == nil && n > 0 {
		return strconv.FormatUint(n-1, 10)
	}
	return version
}

// clusterVersion returns the cluster version that the shadow has seen completely.
func clusterVersion(version string) string {
	if n, err := strconv.ParseUint(version, 10, 64); err == nil {
		return strconv.FormatUint(n/placesPerVersion, 10)
	}
	return version
}

// setVersion sets the version in an object's or a list's metadata to the version that the shadow
// sees.
func setVersion(metadata map[string]any) {
	if version := text(metadata, "resourceVersion"); version != "" {
		metadata["resourceVersion"] = shadowVersion(version, 0)
	}
}

// encodeEvent returns a line in a watch.
func encodeEvent(kind string, object map[string]any) ([]byte, error) {
	line, err := json.Marshal(map[string]any{"type": kind, "object": object})
	if err != nil {
		return nil, fmt.Errorf("write an event of a watch: %w", err)
	}
	return append(line, '\n'), nil
}
