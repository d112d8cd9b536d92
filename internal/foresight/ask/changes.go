package ask

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// changesTime is the time to look for changes.
	changesTime = 5 * time.Second
	// halvings is the number of steps of a search for requests that fit.
	halvings = 6
	// mostTaints and mostTemplates limit the tolerations and the nodes that are tried.
	mostTaints, mostTemplates = 4, 4
	// pageSize limits the nodes that are read with one request.
	pageSize = 500
)

// changes tries changes to a question whose pods do not fit, until the time is over.
func (i *inquiry) changes(ctx context.Context, o *outcome) (found []Change, err error) {
	limited, cancel := context.WithTimeout(ctx, changesTime)
	defer cancel()
	for _, search := range []func(context.Context, *outcome) ([]Change, error){
		i.lowerCount, i.tolerations, i.lowerRequests, i.moreNodes,
	} {
		more, err := search(limited, o)
		found = append(found, more...)
		switch {
		case err == nil:
		case ctx.Err() == nil && limited.Err() != nil:
			return found, nil
		default:
			return found, err
		}
	}
	return found, nil
}

// tried returns a change if all pods fit with a variant.
func (i *inquiry) tried(ctx context.Context, kind, text string, change variant) ([]Change, error) {
	o, err := i.try(ctx, change)
	if err != nil || !o.fits() {
		return nil, err
	}
	return []Change{{Kind: kind, Text: text, Evicts: len(o.evicted)}}, nil
}

// lowerCount tries as many pods as have a node.
func (i *inquiry) lowerCount(ctx context.Context, o *outcome) ([]Change, error) {
	placed := 0
	for _, p := range o.pods {
		if p.node != "" {
			placed++
		}
	}
	if placed == 0 {
		return nil, nil
	}
	return i.tried(ctx, "count", fmt.Sprintf("%d instead of %d pods", placed, len(o.pods)), variant{pods: placed})
}

// lowerRequests searches, for each resource, the largest part of the requests with which all pods
// fit.
func (i *inquiry) lowerRequests(ctx context.Context, o *outcome) (found []Change, err error) {
	for _, name := range requested(o) {
		lowered := func(part float64) variant {
			return variant{change: func(pod object) { scaleRequests(pod, name, part) }}
		}
		tried, err := i.try(ctx, lowered(0))
		if err != nil {
			return found, err
		}
		if !tried.fits() {
			continue
		}
		low, high, best := 0.0, 1.0, (*outcome)(nil)
		for range halvings {
			middle := (low + high) / 2
			tried, err := i.try(ctx, lowered(middle))
			switch {
			case err != nil:
				return found, err
			case tried.fits():
				low, best = middle, tried
			default:
				high = middle
			}
		}
		if best == nil {
			continue
		}
		found = append(found, Change{Kind: "requests", Evicts: len(best.evicted),
			Text: fmt.Sprintf("%s instead of %s of %s for each pod like %s", requestOf(best.pods[0].fields, name),
				requestOf(o.pods[0].fields, name), name, o.pods[0].key)})
	}
	return found, nil
}

// requested returns the resources that the first pod requests. It is empty if the pods have
// requests of their own instead of their containers', or if they differ.
func requested(o *outcome) []string {
	names := map[string]bool{}
	first := ""
	for _, p := range o.pods {
		spec := child(p.fields, "spec")
		if spec["resources"] != nil {
			return nil
		}
		text := ""
		for _, list := range []string{"initContainers", "containers"} {
			containers, _ := spec[list].([]any)
			for _, c := range containers {
				container, _ := c.(object)
				requests := child(child(container, "resources"), "requests")
				for _, name := range slices.Sorted(maps.Keys(requests)) {
					names[name] = true
					text += fmt.Sprint(name, requests[name])
				}
			}
		}
		if first = cmp.Or(first, text); first != text {
			return nil
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// scaleRequests sets the requests for a resource to a part of them.
func scaleRequests(pod object, name string, part float64) {
	for _, list := range []string{"initContainers", "containers"} {
		containers, _ := child(pod, "spec")[list].([]any)
		for _, c := range containers {
			container, _ := c.(object)
			requests := child(child(container, "resources"), "requests")
			if given, err := resource.ParseQuantity(fmt.Sprint(requests[name])); err == nil && requests[name] != nil {
				requests[name] = scaled(given, name, part)
			}
		}
	}
}

// scaled returns a part of an amount, rounded down to a unit in which amounts are written.
func scaled(given resource.Quantity, name string, part float64) string {
	switch {
	case name == string(corev1.ResourceCPU):
		milli := int64(float64(given.MilliValue()) * part)
		return resource.NewMilliQuantity(milli, resource.DecimalSI).String()
	case strings.Contains(name, "/"):
		return resource.NewQuantity(int64(float64(given.Value())*part), resource.DecimalSI).String()
	}
	const mebi = 1 << 20
	bytes := int64(float64(given.Value()) * part)
	if bytes >= mebi {
		bytes -= bytes % mebi
	}
	return resource.NewQuantity(bytes, resource.BinarySI).String()
}

// requestOf returns the sum of the requests of a pod's containers for a resource.
func requestOf(pod object, name string) string {
	var sum resource.Quantity
	containers, _ := child(pod, "spec")["containers"].([]any)
	for _, c := range containers {
		container, _ := c.(object)
		given := child(child(container, "resources"), "requests")[name]
		if amount, err := resource.ParseQuantity(fmt.Sprint(given)); err == nil && given != nil {
			sum.Add(amount)
		}
	}
	return sum.String()
}

// tolerations tries the tolerations for the most frequent taints of the nodes, one after the other.
func (i *inquiry) tolerations(ctx context.Context, _ *outcome) (found []Change, err error) {
	count := map[corev1.Taint]int{}
	err = i.eachNode(ctx, func(node *corev1.Node) {
		for _, taint := range node.Spec.Taints {
			// Those of the cluster itself are of nodes that are not to be used.
			if taint.Effect != corev1.TaintEffectPreferNoSchedule && !strings.HasPrefix(taint.Key, "node.kubernetes.io/") {
				count[corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect}]++
			}
		}
	})
	if err != nil {
		return nil, err
	}
	for _, taint := range mostFrequent(count, mostTaints, func(t corev1.Taint) string { return t.ToString() }) {
		toleration := object{"key": taint.Key, "operator": "Equal", "value": taint.Value, "effect": string(taint.Effect)}
		more, err := i.tried(ctx, "toleration", "a toleration for the taint "+taint.ToString(), variant{
			change: func(pod object) {
				spec := child(pod, "spec")
				given, _ := spec["tolerations"].([]any)
				spec["tolerations"] = append(slices.Clone(given), toleration)
			},
		})
		if found = append(found, more...); err != nil {
			return found, err
		}
	}
	return found, nil
}

// mostFrequent returns the keys with the largest values.
func mostFrequent[K comparable](count map[K]int, most int, name func(K) string) []K {
	keys := slices.SortedFunc(maps.Keys(count), func(a, b K) int {
		return cmp.Or(count[b]-count[a], cmp.Compare(name(a), name(b)))
	})
	return keys[:min(len(keys), most)]
}
