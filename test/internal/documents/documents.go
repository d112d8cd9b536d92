// Package documents holds the configurations that conversions are tested with: the files in
// test/testdata/configurations, Platform9's article, and random ones.
package documents

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pmk-sched/pmk-sched/versions"
)

// Document is a configuration as a user may have written it.
type Document struct {
	// Name identifies the document in a report.
	Name string
	// API is the config API it is written in, without the group.
	API  string
	Text []byte

	read, lossy, differs []string
}

// The comments in a document:
//
//	# read: 1.26-          only these minors accept it; otherwise every one that reads its config API
//	# lossy: v1beta2 1.23- to these config APIs, or for these minors, it cannot be converted without losses; v1beta2@1.27 is both
//	# differs: v1 1.29-    another setting replaces one that was removed there, and a note reports it
var heads = regexp.MustCompile(`(?m)^# (read|lossy|differs): (.*)$`)

// Read returns the documents below the directory test/testdata, sorted by name.
func Read(testdata string) ([]Document, error) {
	paths, err := filepath.Glob(filepath.Join(testdata, "configurations", "*.yaml"))
	if err != nil {
		return nil, err
	}
	slices.Sort(paths)
	paths = append(paths, filepath.Join(testdata, "article", "my-scheduler.yaml"))
	var all []Document
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		d := Document{Name: strings.TrimSuffix(filepath.Base(path), ".yaml"), Text: text}
		if d.API, err = apiOf(text); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, head := range heads.FindAllStringSubmatch(string(text), -1) {
			*map[string]*[]string{"read": &d.read, "lossy": &d.lossy, "differs": &d.differs}[head[1]] = strings.Fields(head[2])
		}
		all = append(all, d)
	}
	return all, nil
}

func apiOf(text []byte) (string, error) {
	found := regexp.MustCompile(`(?m)^apiVersion: kubescheduler\.config\.k8s\.io/(\w+)$`).FindSubmatch(text)
	if found == nil {
		return "", fmt.Errorf("no config API in it")
	}
	return string(found[1]), nil
}

// APIs returns the config APIs that a release reads, without the group.
func APIs(rules versions.Rules) []string {
	var names []string
	for _, full := range rules.Accepted {
		names = append(names, full[strings.LastIndexByte(full, '/')+1:])
	}
	return names
}

// ReadBy reports whether a release accepts the document.
func (d Document) ReadBy(release versions.Release, rules versions.Rules) bool {
	return slices.Contains(APIs(rules), d.API) && (len(d.read) == 0 || within(d.read, release.Minor))
}

// Lossy reports whether the conversion to a config API for a release loses settings.
func (d Document) Lossy(api string, release versions.Release) bool {
	return holds(d.lossy, api, release.Minor)
}

// Differs reports whether another setting replaces one that the config API, or the minor, no longer
// has.
func (d Document) Differs(api string, release versions.Release) bool {
	return holds(d.differs, api, release.Minor)
}

// holds reports whether one of the conditions "v1beta2", "1.20-1.25" and "v1beta2@1.27" is met.
func holds(conditions []string, api string, minor int) bool {
	return slices.ContainsFunc(conditions, func(condition string) bool {
		name, minors, both := strings.Cut(condition, "@")
		if both {
			return name == api && within([]string{minors}, minor)
		}
		return condition == api || within([]string{condition}, minor)
	})
}

// within reports whether a minor is in one of the ranges "1.20-1.25", "1.23-", "1.28".
func within(ranges []string, minor int) bool {
	for _, text := range ranges {
		first, last, open := strings.Cut(text, "-")
		from, err := strconv.Atoi(strings.TrimPrefix(first, "1."))
		if err != nil {
			continue // a config API
		}
		to, err := strconv.Atoi(strings.TrimPrefix(last, "1."))
		switch {
		case !open:
			to = from
		case err != nil:
			to = 1 << 30
		}
		if from <= minor && minor <= to {
			return true
		}
	}
	return false
}
