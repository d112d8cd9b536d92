package ask

import (
	"fmt"
	"slices"
	"strings"
)

// unbound is a part of the scheduler's reason for a pod whose volumes a controller makes first.
const unbound = "unbound immediate PersistentVolumeClaims"

// report adds an outcome to an answer.
func (i *inquiry) report(a *Answer, o *outcome) {
	a.Fits = Yes
	a.Pods, a.Evicted = []Pod{}, []Evicted{}
	for _, p := range o.pods {
		one := Pod{Namespace: p.namespace, Name: p.name, Node: p.node, Reason: p.reason}
		if p.node != "" {
			one.Reason = ""
		}
		a.Pods = append(a.Pods, one)
		switch {
		case p.node != "":
		case p.failed || !p.decided() || strings.Contains(p.reason, unbound):
			a.Fits = Unknown
		case a.Fits == Yes:
			a.Fits = No
		}
	}
	for _, e := range o.evicted {
		a.Evicted = append(a.Evicted, Evicted{Namespace: e.namespace, Name: e.name, Node: e.node})
	}
	slices.SortFunc(a.Evicted, func(x, y Evicted) int {
		return strings.Compare(x.Namespace+"/"+x.Name, y.Namespace+"/"+y.Name)
	})
	for kind := range o.ignored {
		a.Notes = append(a.Notes, fmt.Sprintf("the scheduler does not read objects of kind %s", kind))
	}
	if i.other != "" {
		a.Notes = append(a.Notes, fmt.Sprintf("pods name the scheduler %s, which does not answer here: %s does", i.other,
			i.e.scheduler.Request.Name))
	}
	slices.Sort(a.Notes)
	a.Unknown = append(i.e.unknown(), i.unknown(o)...)
}
