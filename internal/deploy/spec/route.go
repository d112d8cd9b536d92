package spec

import (
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// NoRoute is the value of --route for a scheduler without a route.
const NoRoute = "none"

const routeHint = "write --route namespaces=NAME,NAME, --route namespace-selector=SELECTOR, --route pods=SELECTOR or " +
	"--route resources=NAME,NAME, where SELECTOR is as for kubectl, --route share=PERCENT; or --route " + NoRoute

// route returns the route with the parts that the values of --route name in place of its own. The
// parts that no value names, and what happens on failure, stay.
func (f Flags) route(current *v1alpha1.Route) (*v1alpha1.Route, error) {
	if len(f.Route) == 0 {
		return current, nil
	}
	if f.Route[0] == NoRoute {
		if len(f.Route) > 1 {
			return nil, problem.Invalidf("", "--route %s excludes other values", NoRoute)
		}
		return nil, nil
	}
	made := v1alpha1.Route{}
	if current != nil {
		made = *current
	}
	for _, value := range f.Route {
		part, text, found := strings.Cut(value, "=")
		if !found || text == "" {
			return nil, problem.Invalidf(routeHint, "invalid --route %q: must be PART=VALUE", value)
		}
		var err error
		switch part {
		case "namespaces":
			made.Namespaces = strings.Split(text, ",")
		case "resources":
			made.Resources = strings.Split(text, ",")
		case "namespace-selector":
			made.NamespaceSelector, err = selector(value, text)
		case "pods":
			made.PodSelector, err = selector(value, text)
		case "share":
			var share int
			if share, err = strconv.Atoi(strings.TrimSuffix(text, "%")); err != nil {
				err = problem.Invalidf(routeHint, "invalid --route %q: must be a number", value)
			}
			made.Share = &share
		default:
			err = problem.Invalidf(routeHint, "invalid --route %q: unknown part %q", value, part)
		}
		if err != nil {
			return nil, err
		}
	}
	return &made, nil
}

// selector parses a selector as kubectl does.
func selector(value, text string) (*v1alpha1.LabelSelector, error) {
	requirements, err := labels.ParseToRequirements(text)
	if err != nil {
		return nil, problem.Invalidf(routeHint, "invalid --route %q: %v", value, err)
	}
	made := &v1alpha1.LabelSelector{}
	for _, r := range requirements {
		operator, ok := operators[r.Operator()]
		if !ok {
			return nil, problem.Invalidf(routeHint, "invalid --route %q: %s cannot be used here", value, r.Operator())
		}
		made.MatchExpressions = append(made.MatchExpressions,
			v1alpha1.LabelRequirement{Key: r.Key(), Operator: operator, Values: r.ValuesUnsorted()})
	}
	return made, nil
}

// operators are the operators of a LabelSelector by those of a selector in text.
var operators = map[selection.Operator]metav1.LabelSelectorOperator{
	selection.In: metav1.LabelSelectorOpIn, selection.Equals: metav1.LabelSelectorOpIn,
	selection.DoubleEquals: metav1.LabelSelectorOpIn, selection.NotIn: metav1.LabelSelectorOpNotIn,
	selection.NotEquals: metav1.LabelSelectorOpNotIn, selection.Exists: metav1.LabelSelectorOpExists,
	selection.DoesNotExist: metav1.LabelSelectorOpDoesNotExist,
}
