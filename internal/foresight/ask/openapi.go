package ask

import (
	"reflect"
	"strings"
)

// OpenAPI returns the OpenAPI document of the handler, made from its types.
func OpenAPI() map[string]any {
	schemas := map[string]any{}
	reference := func(value any) object { return schemaOf(reflect.TypeOf(value), schemas) }
	question, answer := reference(Question{}), reference(Answer{})
	status, failure := reference([]Status{}), reference(Failure{})
	content := func(schema object) object { return object{"application/json": object{"schema": schema}} }
	failed := func(description string) object {
		return object{"description": description, "content": content(failure)}
	}
	return object{
		"openapi": "3.0.3",
		"info":    object{"title": "pmk-sched ask", "version": "v1"},
		"paths": object{
			"/v1/ask": object{"post": object{
				"operationId": "ask", "summary": "Ask the scheduler whether pods fit, and where",
				"requestBody": object{"required": true, "content": content(question)},
				"responses": object{
					"200": object{"description": "the answer", "content": content(answer)},
					"400": failed("the body is not a question"),
					"401": failed("the token is missing or wrong"),
					"413": failed("the body is too large"),
					"422": failed("the question is wrong"),
					"429": failed("too many questions wait"),
					"503": failed("the scheduler or the API server cannot be reached"),
				},
			}},
			"/v1/status": object{"get": object{
				"operationId": "status", "summary": "Show the schedulers that answer",
				"responses": object{
					"200": object{"description": "the schedulers", "content": content(status)},
					"401": failed("the token is missing or wrong"),
				},
			}},
		},
		"components": object{"schemas": schemas, "securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}}},
		"security":   []any{object{"token": []any{}}},
	}
}

// schemaOf returns the schema of a type, and adds the schemas of structs to all.
func schemaOf(t reflect.Type, all object) object {
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem(), all)
	case reflect.Slice:
		return object{"type": "array", "items": schemaOf(t.Elem(), all)}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": true}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Struct:
		if all[t.Name()] == nil {
			all[t.Name()] = object{} // of a type that contains itself
			all[t.Name()] = structSchema(t, all)
		}
		return object{"$ref": "#/components/schemas/" + t.Name()}
	default:
		return object{"type": "string"}
	}
}

func structSchema(t reflect.Type, all object) object {
	properties := object{}
	required := []any{}
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		properties[name] = schemaOf(t.Field(i).Type, all)
		if !strings.Contains(options, "omitempty") {
			required = append(required, name)
		}
	}
	schema := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}
