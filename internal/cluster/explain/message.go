package explain

import (
	"regexp"
	"strconv"
	"strings"
)

// fitMessage is the parsed message from a scheduler that found no node. All releases print
//
//	0/5 nodes are available: <reasons>. <messages of PostFilter plugins>
//
// where reasons is a list of "<count> <reason>" or, from 1.26 on, one PreFilter plugin's reason
// without a count.
type fitMessage struct {
	nodes   int
	reasons []countedReason
	// preemption contains the messages from PostFilter plugins.
	preemption string
}

// countedReason is a reason with the number of its nodes.
type countedReason struct {
	nodes int
	text  string
}

var (
	fitHead = regexp.MustCompile(`^0/(\d+) nodes are available:\s*`)
	// countedAt matches the beginning of each reason but the first: reasons have commas too.
	countedAt = regexp.MustCompile(`, (\d+ )`)
	counted   = regexp.MustCompile(`(?s)^(\d+) (.+)$`)
)

// parseFit parses a scheduler's message. ok is false if it is another one.
func parseFit(message string) (m fitMessage, ok bool) {
	head := fitHead.FindStringSubmatch(message)
	if head == nil {
		return m, false
	}
	m.nodes, _ = strconv.Atoi(head[1]) // digits
	rest := message[len(head[0]):]
	const preemption = "preemption: "
	if at := strings.Index(rest, preemption); at >= 0 {
		m.preemption = strings.TrimSpace(rest[at+len(preemption):])
		rest = rest[:at]
	}
	rest = strings.TrimRight(rest, ", ")
	if !strings.HasSuffix(rest, ".") {
		// The message from another PostFilter plugin: "1 Insufficient cpu. no new claims to deallocate".
		if at := strings.LastIndex(rest, ". "); at >= 0 {
			rest = rest[:at]
		}
	}
	rest = strings.TrimSuffix(strings.TrimSpace(rest), ".")
	for _, text := range splitReasons(rest) {
		reason := countedReason{nodes: m.nodes, text: text}
		if c := counted.FindStringSubmatch(text); c != nil {
			reason.text = c[2]
			reason.nodes, _ = strconv.Atoi(c[1]) // digits
		}
		m.reasons = append(m.reasons, reason)
	}
	return m, true
}

// splitReasons splits a list of counted reasons.
func splitReasons(text string) []string {
	if text == "" {
		return nil
	}
	if text[0] < '0' || text[0] > '9' {
		return []string{text}
	}
	var parts []string
	begin := 0
	for _, at := range countedAt.FindAllStringIndex(text, -1) {
		parts = append(parts, text[begin:at[0]])
		begin = at[0] + len(", ")
	}
	return append(parts, text[begin:])
}

// Reasons returns why a scheduler refused nodes, in its own words, each once. ok is false if the
// message is another one.
func Reasons(message string) (reasons []string, ok bool) {
	m, ok := parseFit(message)
	for _, r := range m.reasons {
		reasons = append(reasons, r.text)
	}
	return reasons, ok
}
