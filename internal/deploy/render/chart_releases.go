package render

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// ofRelease are the fields that each release has separately even if all releases have the same.
func ofRelease() []string {
	return []string{"image", "architectures", "configuration", "args", "pluginRules", "probes"}
}

// ReleasesChart returns the files for one chart with several releases of one scheduler, by their
// paths. The chart selects the release by the API server's version. The releases are in ascending
// order.
func ReleasesChart(list []Input) (map[string][]byte, error) {
	if len(list) == 0 {
		return nil, errors.New("write a chart: no release is given")
	}
	var all []values
	for _, in := range list {
		v, err := readFields(in)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	fields, releases := []field{}, map[string]any{}
	for _, in := range list {
		releases[in.Release.String()] = map[string]any{}
	}
	for i, common := range all[len(all)-1].fields {
		differs, err := differ(all, i)
		if err != nil {
			return nil, fmt.Errorf("write a chart of scheduler %s: %w", list[0].Name, err)
		}
		if differs || slices.Contains(ofRelease(), common.name) {
			for j, in := range list {
				releases[in.Release.String()].(map[string]any)[common.name] = all[j].fields[i].value
			}
			common.comment = strings.TrimSpace(common.comment + "\n# Empty: the field of the release.")
			common.value = nil
		}
		fields = append(fields, common)
	}
	fields = append(fields, field{"releases",
		"Fields of each Kubernetes release. The minor of the API server selects one, among its patches the newest that is\n" +
			"# not newer than the API server. A field above that is not empty wins.", releases})
	newest := list[len(list)-1]
	return chartFiles(newest, all[len(all)-1], fields)
}

// differ reports whether a field is not the same in all releases.
func differ(all []values, index int) (bool, error) {
	first, err := yaml.Marshal(all[0].fields[index].value)
	if err != nil {
		return false, err
	}
	for _, v := range all[1:] {
		text, err := yaml.Marshal(v.fields[index].value)
		if err != nil || string(text) != string(first) {
			return true, err
		}
	}
	return false, nil
}
