package event

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/docs"
)

// node is as much of a JSON Schema as ours uses.
type node struct {
	Ref        string          `json:"$ref"`
	Type       string          `json:"type"`
	Format     string          `json:"format"`
	Enum       []string        `json:"enum"`
	Items      *node           `json:"items"`
	Properties map[string]node `json:"properties"`
	Required   []string        `json:"required"`
	Additional *bool           `json:"additionalProperties"`
	Defs       map[string]node `json:"$defs"`
	AllOf      []struct {
		If struct {
			Properties struct {
				Kind struct {
					Const string `json:"const"`
				} `json:"kind"`
			} `json:"properties"`
		} `json:"if"`
		Then struct {
			Required []string `json:"required"`
		} `json:"then"`
	} `json:"allOf"`
}

func schema(t *testing.T) node {
	t.Helper()
	var root node
	if err := json.Unmarshal(docs.EventsSchema, &root); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestSchemaMatchesTypes(t *testing.T) {
	root := schema(t)
	used := map[string]bool{}
	compareStruct(t, "Event", reflect.TypeFor[Event](), root, root.Defs, used)
	for name := range root.Defs {
		if !used[name] {
			t.Errorf("the schema defines %s, which no event has", name)
		}
	}
}

func compareStruct(t *testing.T, where string, typ reflect.Type, n node, defs map[string]node, used map[string]bool) {
	t.Helper()
	if n.Additional == nil || *n.Additional {
		t.Errorf("%s: additionalProperties is not false", where)
	}
	var names, required []string
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
		if !strings.Contains(options, "omit") {
			required = append(required, name)
		}
		p, ok := n.Properties[name]
		if !ok {
			t.Errorf("%s: the schema lacks %q", where, name)
			continue
		}
		compareType(t, where+"."+name, f.Type, strings.Contains(options, "string"), p, defs, used)
	}
	for name := range n.Properties {
		if !slices.Contains(names, name) {
			t.Errorf("%s: the schema has %q, the type has not", where, name)
		}
	}
	slices.Sort(required)
	slices.Sort(n.Required)
	if diff := cmp.Diff(required, n.Required); diff != "" {
		t.Errorf("%s: required, type - schema +\n%s", where, diff)
	}
}

func compareType(t *testing.T, where string, typ reflect.Type, asString bool, n node, defs map[string]node, used map[string]bool) {
	t.Helper()
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	want := ""
	switch {
	case typ.String() == "time.Time":
		if want = "string"; n.Format != "date-time" {
			t.Errorf("%s: format %q, want date-time", where, n.Format)
		}
	case typ.Kind() == reflect.Struct:
		if n.Ref != "#/$defs/"+typ.Name() {
			t.Errorf("%s: refers to %q, want %s", where, n.Ref, typ.Name())
			return
		}
		if !used[typ.Name()] {
			used[typ.Name()] = true
			compareStruct(t, typ.Name(), typ, defs[typ.Name()], defs, used)
		}
		return
	case typ.Kind() == reflect.Slice:
		if want = "array"; n.Items == nil {
			t.Errorf("%s: no items", where)
			return
		}
		compareType(t, where+"[]", typ.Elem(), false, *n.Items, defs, used)
	case typ.Kind() == reflect.Bool:
		want = "boolean"
	case typ.Kind() == reflect.String || asString:
		want = "string"
	default:
		want = "integer"
	}
	if len(n.Enum) > 0 && n.Type == "" {
		n.Type = "string"
	}
	if n.Type != want {
		t.Errorf("%s: type %q, want %q", where, n.Type, want)
	}
}

// TestKinds compares the constants of the source with Kinds and the schema.
func TestKinds(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "event.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var constants []Kind
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			if id, ok := v.Type.(*ast.Ident); ok && id.Name == "Kind" {
				s, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Error(err)
				}
				constants = append(constants, Kind(s))
			}
		}
		return true
	})
	if diff := cmp.Diff(constants, Kinds()); diff != "" {
		t.Errorf("constants - Kinds +\n%s", diff)
	}
	root := schema(t)
	var enum, ruled []Kind
	for _, k := range root.Properties["kind"].Enum {
		enum = append(enum, Kind(k))
	}
	if diff := cmp.Diff(Kinds(), enum); diff != "" {
		t.Errorf("Kinds - schema +\n%s", diff)
	}
	for _, rule := range root.AllOf {
		if k := rule.If.Properties.Kind.Const; k != "" && len(rule.Then.Required) > 0 {
			ruled = append(ruled, Kind(k))
		}
	}
	if diff := cmp.Diff(Kinds(), ruled); diff != "" {
		t.Errorf("Kinds - rules of the schema +\n%s", diff)
	}
}
