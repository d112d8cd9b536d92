package networkaware

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/pmk-sched/pmk-sched/scheduler/customresource"
)

// path is the path of a field in an object: field names (string) and list indexes (int).
type path []interface{}

// maxPath limits the number of steps, and with it the work for each object.
const maxPath = 32

var (
	fieldStep = regexp.MustCompile(`^\.?([A-Za-z_][A-Za-z0-9_-]*)`)
	indexStep = regexp.MustCompile(`^\[(0|[1-9][0-9]{0,5})\]`)
	keyStep   = regexp.MustCompile(`^\[(?:'([^'\]]+)'|"([^"\]]+)")\]`)
)

// parsePath parses the subset of JSONPath that names exactly one field: status.latency,
// .status.links[0].latency, {.metadata.labels['kubernetes.io/hostname']}.
func parsePath(text string) (path, error) {
	rest := strings.TrimSpace(text)
	if strings.HasPrefix(rest, "{") && strings.HasSuffix(rest, "}") {
		rest = strings.TrimSpace(rest[1 : len(rest)-1])
	}
	rest = strings.TrimPrefix(rest, "$")
	var p path
	for rest != "" {
		var step interface{}
		var length int
		if m := indexStep.FindStringSubmatch(rest); m != nil && len(p) > 0 {
			index, _ := strconv.Atoi(m[1]) // it has at most six digits
			step, length = index, len(m[0])
		} else if m := keyStep.FindStringSubmatch(rest); m != nil {
			step, length = m[1]+m[2], len(m[0])
		} else if m := fieldStep.FindStringSubmatch(rest); m != nil && (len(p) == 0 || rest[0] == '.') {
			step, length = m[1], len(m[0])
		} else {
			return nil,
				fmt.Errorf(
					"invalid path %q at %q: expected a path such as status.links[0].latency or "+
						"metadata.labels['kubernetes.io/hostname']", text, rest)
		}
		p = append(p, step)
		rest = rest[length:]
	}
	if len(p) == 0 || len(p) > maxPath {
		return nil, fmt.Errorf("invalid path %q: it has %d steps, must have 1 to %d", text, len(p), maxPath)
	}
	return p, nil
}

func (p path) find(object map[string]interface{}) (interface{}, bool) {
	var current interface{} = object
	for _, step := range p {
		switch step := step.(type) {
		case string:
			fields, _ := current.(map[string]interface{})
			current = fields[step]
		case int:
			list, _ := current.([]interface{})
			if step >= len(list) {
				return nil, false
			}
			current = list[step]
		}
	}
	return current, current != nil
}

// number returns the number in a field: a number, or a string with a number, a quantity such as
// "10Mi" or a duration such as "12ms", which is converted to seconds. A number that is not finite
// is an error: a quantity may be "1e400".
func number(value interface{}) (float64, error) {
	n, err := anyNumber(value)
	if err == nil && (math.IsNaN(n) || math.IsInf(n, 0)) {
		return 0, fmt.Errorf("%q is not a finite number", shortened(fmt.Sprint(value)))
	}
	return n, err
}

// anyNumber is number for all values of float64.
func anyNumber(value interface{}) (float64, error) {
	switch v := value.(type) {
	case int64:
		return float64(v), nil
	case float64:
		return v, nil
	case string:
		if n, err := strconv.ParseFloat(v, 64); err == nil {
			return n, nil
		}
		if q, err := customresource.ParseQuantity(v); err == nil {
			return q.AsApproximateFloat64(), nil
		}
		if d, err := time.ParseDuration(v); err == nil {
			return d.Seconds(), nil
		}
		return 0, fmt.Errorf("%q is not a number, quantity or duration", shortened(v))
	}
	return 0, fmt.Errorf("a %T is not a number", value)
}

func shortened(text string) string {
	if len(text) > 50 {
		return text[:50] + "…"
	}
	return text
}
