package daemon

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"weir/internal/policy"
)

// inForce says for each field of the policy what reads it once the file was loaded anew: a function that a reload calls, or that reads the
// policy in force each time. A new start alone puts a field without one in force, and a reload refuses another value of it.
var inForce = map[string]string{
	"Mode":                        "internal/daemon/active.go:Mode",
	"Guard.Parents":               "internal/daemon/parents.go:Apply",
	"Guard.Cgroups":               "internal/daemon/alone.go:checkAlone",
	"Hold":                        "internal/netegress/policy.go:setPolicy",
	"Approver":                    "internal/daemon/reload.go:replacePolicy",
	"Review":                      "internal/netegress/policy.go:setPolicy",
	"ApprovalTimeout":             "internal/daemon/reload.go:replacePolicy",
	"ApprovalTTL":                 "internal/daemon/reload.go:replacePolicy",
	"Grant.Seconds":               "internal/daemon/review.go:termsOf",
	"Grant.Bytes":                 "internal/daemon/review.go:termsOf",
	"Allow":                       "internal/policy/destinations.go:Destinations",
	"Resolvers":                   "internal/daemon/active.go:InMode",
	"AllowUnixSockets":            "internal/netegress/policy.go:SetPolicy",
	"Taint.Initial":               "internal/daemon/parents.go:setStart",
	"Taint.SecretFiles":           "internal/daemon/policy.go:setPolicy",
	"Taint.Tools":                 "internal/taint/tools.go:ToolBits",
	"Taint.UntrustedTools":        "internal/taint/tools.go:ToolBits",
	"Taint.TrustedNetworks":       "internal/policy/trusted.go:TrustedPrefixes",
	"Taint.ReplyBudget":           "internal/netegress/policy.go:setPolicy",
	"Cop.Reviewer":                "internal/daemon/review.go:newReviewer",
	"Cop.Model":                   "internal/daemon/review.go:newReviewer",
	"Cop.BaseURL":                 "internal/daemon/review.go:newReviewer",
	"Cop.KeyFile":                 "internal/daemon/review.go:newReviewer",
	"Cop.KeyEnv":                  "internal/daemon/review.go:newReviewer",
	"Cop.Flagged":                 "internal/policy/policy.go:AskFlagged",
	"Cop.Seconds":                 "internal/daemon/review.go:newReviewer",
	"Cop.Concurrency":             "internal/daemon/review.go:newReviewer",
	"Cop.CacheSeconds":            "internal/daemon/review.go:newReviewer",
	"Cop.Grant.Seconds":           "internal/daemon/review.go:termsOf",
	"Cop.Grant.Bytes":             "internal/daemon/review.go:termsOf",
	"Control.Look":                "internal/daemon/listen.go:rolesOf",
	"Control.Answer":              "internal/daemon/listen.go:rolesOf",
	"Control.Taint":               "internal/daemon/listen.go:rolesOf",
	"Vault.Proxy":                 "internal/daemon/tools.go:proxy",
	"Confirm.Tools":               "internal/daemon/host.go:Who",
	"Confirm.ApprovalExemptTools": "internal/daemon/host.go:Who",
	"Containers.Containerd":       "internal/container/keeper.go:same",
	"Containers.NRI":              "internal/container/keeper.go:same",
	"Containers.Refuse":           "internal/container/keeper.go:same",
	"Containers.Match":            "internal/container/keeper.go:same",
	"Volumes.Shared":              "internal/daemon/volumes.go:becomes",
	"Volumes.Report":              "internal/daemon/volumes.go:becomes",
	"Volumes.Ignore":              "internal/daemon/volumes.go:becomes",
	"Fleet.Node":                  "internal/fleet/statement.go:Node",
	"Fleet.Operators":             "internal/fleet/statement.go:Open",
	"Fleet.TwoPeople":             "internal/daemon/fleet.go:wantsTwo",
	"Fleet.Identity":              "internal/daemon/elsewhere.go:elsewhere",
	"Fleet.Label":                 "internal/container/place.go:origin",
	"Fleet.Unknown":               "internal/daemon/elsewhere.go:elsewhere",
	"Fleet.Servers":               "internal/fleet/link/link.go:Connect",
	"Fleet.Prefix":                "internal/fleet/link/link.go:Connect",
	"Fleet.CAFile":                "internal/fleet/link/link.go:Connect",
	"Fleet.CredsFile":             "internal/fleet/link/link.go:account",
	"Fleet.Revoked":               "internal/fleet/statement.go:Open",
	"OTLP.Endpoint":               "internal/otlp/run.go:prepare",
	"OTLP.HeadersFile":            "internal/otlp/door.go:newDoor",
	"OTLP.CAFile":                 "internal/otlp/door.go:newDoor",
	"OTLP.CertFile":               "internal/otlp/door.go:newDoor",
	"OTLP.KeyFile":                "internal/otlp/door.go:newDoor",
	"OTLP.Without":                "internal/otlp/events.go:newEvents",
	"OTLP.MetricsSeconds":         "internal/otlp/run.go:Run",
	"Hooks":                       "internal/daemon/host.go:Who",
	"IPC":                         "internal/daemon/folders.go:folderOf",
}

// What a policy says is in force once its file is loaded anew, or refused: nothing of it is left as it was.
func TestReloadTakesOrRefusesEachKey(t *testing.T) {
	left := maps.Clone(inForce)
	eachKey(reflect.TypeFor[policy.Policy](), "", nil, func(name string, index []int) {
		old, changed := policy.Default(), policy.Default()
		change(t, reflect.ValueOf(&changed).Elem().FieldByIndex(index))
		refused, place := needsStart(old, changed) != nil, left[name]
		delete(left, name)
		switch {
		case refused == (place != ""):
			t.Errorf("%s: a reload refuses it: %v, what else puts it in force: %q", name, refused, place)
		case place != "" && !reads(t, place, name[strings.LastIndex(name, ".")+1:]):
			t.Errorf("%s: %s does not read it", name, place)
		}
	})
	for name := range left {
		t.Errorf("the policy has no %s", name)
	}
}

// eachKey calls do for each field that a policy file can set.
func eachKey(of reflect.Type, within string, index []int, do func(name string, index []int)) {
	for i := range of.NumField() {
		f := of.Field(i)
		at := append(slices.Clone(index), i)
		switch _, key := f.Tag.Lookup("key"); {
		case !key:
		case f.Type.Kind() == reflect.Struct:
			eachKey(f.Type, within+f.Name+".", at, do)
		default:
			do(within+f.Name, at)
		}
	}
}

// change gives a field another value.
func change(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Slice:
		v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
	default:
		t.Fatalf("change a %s", v.Type())
	}
}

// reads says whether a function has a field of this name in it.
func reads(t *testing.T, place, field string) bool {
	t.Helper()
	path, name, _ := strings.Cut(place, ":")
	file, err := parser.ParseFile(token.NewFileSet(), "../../"+path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == name {
			ast.Inspect(f, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == field {
					found = true
				}
				return true
			})
		}
	}
	return found
}
