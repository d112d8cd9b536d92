package kubeapi

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

const (
	// tablePage is the number of rows per page.
	tablePage = 500
	// tableAccept requests a list as a table.
	tableAccept = "application/json;as=Table;g=meta.k8s.io;v=v1"
)

// table is the part of a metav1.Table that is read.
type table struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
	Columns []column `json:"columnDefinitions"`
	Rows    []struct {
		Cells []any `json:"cells"`
	} `json:"rows"`
}

type column struct {
	Name string `json:"name"`
}

// ReadTable lists a resource in a namespace, or in all if it is empty, as the table that kubectl
// prints, in pages, and calls visit with each row's values in columns. A row is about 200 bytes,
// while a node or a pod is several thousand. The error may be that the list expired between two
// pages.
func ReadTable(ctx context.Context, client rest.Interface, namespace, resource string, columns []string,
	visit func(cells []string)) error {
	for next := ""; ; {
		page, err := tablePageOf(ctx, client, namespace, resource, next)
		if err == nil {
			err = page.visit(columns, visit)
		}
		if err != nil {
			return err
		}
		if next = page.Metadata.Continue; next == "" {
			return nil
		}
	}
}

func tablePageOf(ctx context.Context, client rest.Interface, namespace, resource, next string) (*table, error) {
	request := client.Get().NamespaceIfScoped(namespace, namespace != "").Resource(resource).SetHeader("Accept",
		tableAccept).
		Param("includeObject", string(metav1.IncludeNone)).Param("limit", strconv.Itoa(tablePage))
	if next != "" {
		request = request.Param("continue", next)
	}
	result := request.Do(ctx)
	if err := result.Error(); err != nil { // the message of the API server, unlike the error of Raw
		return nil, err
	}
	raw, err := result.Raw()
	if err != nil {
		return nil, err
	}
	var page table
	if err := json.Unmarshal(raw, &page); err != nil {
		return nil, fmt.Errorf("read table of %s: %w", resource, err)
	}
	if page.Kind != "Table" {
		return nil, fmt.Errorf("read table of %s: the response is a %q", resource, page.Kind)
	}
	return &page, nil
}

func (t *table) visit(columns []string, visit func(cells []string)) error {
	at := make([]int, len(columns))
	for i, name := range columns {
		if at[i] = slices.Index(t.Columns, column{name}); at[i] < 0 {
			return fmt.Errorf("read table: no column %s", name)
		}
	}
	cells := make([]string, len(columns))
	for _, row := range t.Rows {
		for i, index := range at {
			if index >= len(row.Cells) {
				return fmt.Errorf("read table: a row has %d cells for %d columns", len(row.Cells), len(t.Columns))
			}
			cells[i] = fmt.Sprint(row.Cells[index])
		}
		visit(cells)
	}
	return nil
}
