package extender

import (
	"encoding/json"
	"strconv"
)

// Answers with thousands of nodes are encoded by hand: they are flat, and encoding/json would sort
// the names.

// appendFilterResult encodes an ExtenderFilterResult: the nodes that fit, in the form of the
// request, and why the others do not.
//
// An unresolvable node is in both maps, since schedulers of 1.20 know only the first, and later
// ones prefer the second.
func appendFilterResult(out []byte, a *nodeArguments, rejected []*rejection) []byte {
	if a.whole == nil {
		out = append(out, `{"Nodes":null,"NodeNames":[`...)
	} else {
		out = append(out, `{"Nodes":{"metadata":{},"items":[`...)
	}
	first := true
	for i, why := range rejected {
		if why != nil {
			continue
		}
		out = comma(out, &first)
		if a.whole == nil {
			out = appendString(out, a.names[i])
		} else {
			out = append(out, a.whole[i].raw...)
		}
	}
	if a.whole == nil {
		out = append(out, ']')
	} else {
		out = append(out, `]},"NodeNames":null`...)
	}
	out = append(out, `,"FailedNodes":`...)
	out = appendRejections(out, a.names, rejected, func(*rejection) bool { return true })
	out = append(out, `,"FailedAndUnresolvableNodes":`...)
	out = appendRejections(out, a.names, rejected, func(r *rejection) bool { return r.unresolvable })
	return append(out, `,"Error":""}`...)
}

func appendRejections(out []byte, names []string, rejected []*rejection, counts func(*rejection) bool) []byte {
	out = append(out, '{')
	first := true
	// Most nodes are rejected for the same reason as the previous one.
	var last string
	var reason []byte
	for i, why := range rejected {
		if why == nil || !counts(why) {
			continue
		}
		if reason == nil || why.reason != last {
			last, reason = why.reason, appendString(reason[:0], why.reason)
		}
		out = comma(out, &first)
		out = appendString(out, names[i])
		out = append(out, ':')
		out = append(out, reason...)
	}
	return append(out, '}')
}

func appendPriorities(out []byte, names []string, scores []int64) []byte {
	out = append(out, '[')
	first := true
	for i, name := range names {
		out = comma(out, &first)
		out = append(out, `{"Host":`...)
		out = appendString(out, name)
		out = append(out, `,"Score":`...)
		out = strconv.AppendInt(out, scores[i], 10)
		out = append(out, '}')
	}
	return append(out, ']')
}

func comma(out []byte, first *bool) []byte {
	if *first {
		*first = false
		return out
	}
	return append(out, ',')
}

// appendString encodes a JSON string. Characters of names need no escape.
func appendString(out []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return appendEscaped(out, text)
		}
	}
	out = append(out, '"')
	out = append(out, text...)
	return append(out, '"')
}

func appendEscaped(out []byte, text string) []byte {
	escaped, err := json.Marshal(text)
	if err != nil { // no string fails
		return append(out, `""`...)
	}
	return append(out, escaped...)
}
