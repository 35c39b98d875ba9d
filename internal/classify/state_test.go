package classify_test

import (
	"testing"

	"weir/internal/classify"
)

// TestF15ProvedG10: of the shell's state only what holds on every path is relied on (F15).
func TestF15ProvedG10(t *testing.T) {
	for _, text := range []string{
		// an array that is not surely associative
		`m=(1); declare -A m; k=$(cat f); m[$k]=1`, `read -a m < f; declare -A m; k=$(cat f); m[$k]=1`, `mapfile m < f; declare -A m; k=$(cat f); m[$k]=1`, `declare -a m; declare -A m; k=$(cat f); echo ${m[$k]}`,
		`m[0]=1; typeset -A m; k=$(cat f); m[$k]=1`, `f() { m=(1); }; f; declare -A m; k=$(cat f); m[$k]=1`, `for i in 1 2; do m=(1); done; declare -A m; k=$(cat f); m[$k]=1`, `eval 'm=(1)'; declare -A m; k=$(cat f); m[$k]=1`,
		`declare -A m; unset m; k=$(cat f); m[$k]=1`, `declare -A m; f() { unset m; }; f; k=$(cat f); m[$k]=1`, `declare -A m; while read k; do m[$k]=1; unset m; done < f`, `declare -A m; (unset m; k=$(cat f); m[$k]=1)`,
		`declare -A m; eval 'unset m'; k=$(cat f); m[$k]=1`, `declare -A m; ls && unset -v m; k=$(cat f); m[$k]=1`, `declare -A m; while read k; do m[$k]=1; eval "unset m"; done < f`, `declare -A m; for k in *; do m[$k]=1; command unset m; done`,
		`local -A m; k=$(cat f); m[$k]=1`, `ls && declare -A m; k=$(cat f); m[$k]=1`, `for i in 1 2; do declare -A m; k=$(cat f); m[$k]=1; unset m; m=(1); done`, `f() { declare -gA m; k=$(cat f); m[$k]=1; }`,
		`f() { local -a m; local -A m; k=$(cat f); m[$k]=1; }`, `if ls; then declare -A m; fi; k=$(cat f); m[$k]=1`, `f() { unset m; }; g() { local -A m; f; k=$(cat f); m[$k]=1; }`, `declare -A m; unset m n; read k < f; [[ -v m ]]; m[$k]=1`,
		// what POSIX shells take for the path of a program: with a directory "m[x" or "x[0]=", dash and busybox ran the program that the data named
		`declare -A m; k=$(cat f); m[$k]=1`, `declare -A m; k=$(cat f); m["$k"]=1`, `declare -A m; while read -r k; do m[$k]=1; done < f`, `declare -A a b; read -r k < f; a[$k]=1; b[$k]=2`, `declare -A m; m[x/../p]=1`, `declare -A m; m["x/../p"]=1`, `x[0]=$(cat f)`, `x[0]="$(cat f)"`, `x+=$(cat f)`, `read -r y < f; x+=" $y"`,
		`y=a/b; x+=$y`, `y=/../p; x[0]=$y`, `eval 'm=(1)'; x[0]=$(cat f)`, `ls && eval 'm=(1)'; x+=$(cat f)`, `trap 'm=(1)' EXIT; x+=$(cat f)`, `bash -c 'm=(1)'; x+=$(cat f)`, `m=(1); sh -c 'x[0]=$(cat f)'`,
		// a number that is not surely one
		`read i < f; local i=1; echo $((i))`, `read i < f; ls || local i=1; echo $((i))`, `f() { local i; read i < f; declare -g i=1; echo $((i)); }`, `read x < f; CI=1; export CI=x; echo $((CI))`,
		`read i < f; case $1 in a) i=1 ;& b) echo $((i)) ;; esac`, `read i < f; case $1 in a) i=1 ;;& b) echo $((i)) ;; esac`, `MAPFILE=1; mapfile < f; echo $((MAPFILE))`,
		`read i < f; case x in $((i=5))) ;; esac; echo $((i)); case a in b|$((i=5))) ;; esac; read i < f; case a in a|$((i=5))) echo $((i)) ;; esac`,
		`i=; case x in "${i:=curl x}") ;; *) eval "$i" ;; esac`, `set -- ls 'curl x'; i=1; while ls; do eval "\$$i"; ((i++)); done`, `set -- ls 'curl x'; i=1; for x in a b; do eval "\$$i"; : $((i+=1)); done`,
		`declare -p x=$(curl x)`, `export -p x="$(curl x)"`, `set -- ls curl; i=1; until eval "\$$i"; do ((i += 1)); done`,
		// what a redirection keeps from running
		`i=$(cat f); i=1 < nofile; echo $((i))`, `i=$(cat f); export i=1 < nofile; echo $((i))`, `i=$(cat f); declare i=1 < "$x"; echo $((i))`, `i=$(cat f); { i=1; } < nofile; echo $((i))`, `i=$(cat f); export i=1 >&7; echo $((i))`, `i=$(cat f); export i=1 > /tmp/x; echo $((i))`,
		`i=$(cat f); f() { i=1; } < nofile; f; echo $((i))`, `i=$(cat f); if ls; then i=1; else i=2; fi < nofile; echo $((i))`, `i=$(cat f); eval i=1 < nofile; echo $((i))`, `set -- $(cat f); set -- 1 < nofile; echo $(($1))`, `declare -A m=() < nofile; k=$(cat f); m[$k]=1`, `i=$(cat f); case a in *) i=1 ;; esac < nofile; echo $((i))`,
		// a directory that a trap leaves
		`trap 'cd /etc/cron.d' DEBUG; echo x > y`, `f() { trap 'pushd /etc' USR1; }; f; echo x > y`,
		`export -p LD_PRELOAD=./x; ls`, `export -p PATH=.; ls`, `export -fp PATH=.; ls`,
	} {
		if r := classify.Shell(text, "/w"); r.Class == classify.Local {
			t.Errorf("%s: is local", text)
		}
	}
	for _, text := range []string{
		`declare -A m=(); k=$(cat f); m[$k]=1; echo "${m[$k]}"`, `declare -A m=(); while read -r k; do m[$k]=1; done < f; echo "${!m[@]}"`, `declare -A m; m[a]=1; echo "${m[a]}"`, `declare -A m; m[$((1 + 1))]=1`, `declare -A m=([a]=1 [b]=2); m[c]=3; echo "${m[a]}"`, `f() { local -A m; local k; k=$(cat f); m[$k]=1; }; f`,
		`declare -A a=() b=(); read -r k < f; a[$k]=1; b[$k]=2`, `declare -A m=(); declare -A m; read -r k < f; m[$k]=1`, `x=(1); declare -A m; unset x; read -r k < f; m[$k]=1`, `m=(1 2); echo "${m[0]}" "${m[@]}"`, `x=; for f in *.go; do x+=" a"; done; echo "$x"`, `n=1; x+=$n; echo "$x"`, `a=(); while read -r l; do a+=("$l"); done < f; a[0]=$(cat f)`,
		`f() { local i=1; echo $((i + 1)); }; f`, `i=1; case $1 in a) i=2 ;; b) i=3 ;; esac; echo $((i))`, `i=0; for f in *.go; do i=$((i + 1)); done; echo $((i))`, `i=0; while read -r l; do ((i++)); done < f; echo $((i))`,
		`i=$(cat f); i=1 2> /dev/null; echo $((i))`, `i=$(cat f); export i=1 2>&1; echo $((i))`, `read -r i <<< x; i=1; echo $((i))`, `cd /w/a 2> /dev/null && echo x > y`, `{ cd /w/a && ls; } > /tmp/x && echo x > /tmp/y`, `f() { ls; } < f; f`, `i=0; while read -r l; do i=$((i + 1)); done < f; echo $((i)) > /tmp/n`,
		`declare i=1; echo $((i))`, `trap 'rm -f /tmp/x' EXIT; echo x > y`, `trap 'cd /; rm -f /tmp/x' EXIT; echo x > y`, `case $1 in a) echo x > y ;;& b) ls ;; esac`, `f() { declare -g i=1; }; f; ls`, `export -p`, `declare -p x`,
	} {
		if r := classify.Shell(text, "/w"); r.Class != classify.Local {
			t.Errorf("%s: %v: %v", text, r.Class, r.Reasons)
		}
	}
}

// TestF15Counted: arithmetic may read what a program that counts prints, and nothing that may have other text in it (F15).
func TestF15Counted(t *testing.T) {
	for text, local := range map[string]bool{
		"echo $(( $(wc -l < f) + 1 ))": true, "n=$(wc -l < f); echo $((n + 1))": true, `n="$(wc -l < f)"; echo $((n))`: true, "n=$(ls | wc -l); echo $((n / 2))": true, "n=`wc -l < f`; echo $((n))": true, "echo $((`wc -l < f` * 2))": true,
		"n=$(grep -c x f); echo $((n))": true, "n=$(grep -cv 'a b' < f); echo $((n - 1))": true, `n=$(cat f | grep -ic "a b"); if [[ $n -gt 3 ]]; then echo many; fi`: true, "n=$(wc -c < f 2>/dev/null); ((n++)); echo $n": true, "f() { local n; n=$(wc -l < f); echo $((n)); }; f": true,
		"exec 2>&1; n=$(wc -l < f); echo $((n))": true, "start=$(date +%s); ls; end=$(date +%s); echo $((end - start))": true, "echo $(( $(date +%s) - 5 ))": true, "n=$(nproc); echo $((n * 2))": true, "[[ $(id -u) -eq 0 ]]": true, `[[ "$(wc -l < f)" -gt 3 ]]`: true,
		"n=0; for f in *.go; do n=$((n + $(wc -l < f))); done; echo $n": true, "n=1; if ls; then n=$(wc -l < f); fi; echo $((n))": true, "n=$(wc -l < f) m=2; echo $((n + m))": true, "n=$(wc -l < f); for i in 1 2; do n=$(wc -l < g); done; echo $((n))": true,
		"n=$(wc -l < f |& wc -l); echo $((n))": true, "x=$(( $(ls | sort | uniq | wc -l) ))": true,

		"n=$(wc -l < f | tr -d ' '); echo $((n))": true, "n=$(ls | wc -l | tr -d '[:space:]'); echo $((n))": true, "n=$(wc -l f | awk '{print $1}'); echo $((n))": true, "n=$(wc -l f | cut -d' ' -f1); echo $((n))": true, `n=$(wc -l "my file" | cut -d ' ' -f1); echo $((n))`: true,
		"n=$(cat f | tr -d ' '); echo $((n))": false, "n=$(wc -l < f | tr a b); echo $((n))": false, "n=$(wc -l f | tr -d ' '); echo $((n))": false, "n=$(wc -l f | awk '{print $2}'); echo $((n))": false, "n=$(wc -l * | awk '{print $1}'); echo $((n))": false, "n=$(wc -l f 2>&1 | awk '{print $1}'); echo $((n))": false,
		"n=$(wc -l f |& cut -d' ' -f1); echo $((n))": false, "n=$(wc -l < f |& tr -d ' '); echo $((n))": false, "n=$(wc -l $f | awk '{print $1}'); echo $((n))": false, "n=$(wc -l f g | awk '{print $1}'); echo $((n))": false, "n=$(cat f | awk '{print $1}'); echo $((n))": false, "n=$(wc -l < f | cut -d' ' -f1 g); echo $((n))": false,
		"n=$({ wc -l f; cat g; } | cut -d' ' -f1); echo $((n))": false, "n=$(wc -l f | awk '{print $1}' 2>&1); echo $((n))": false, "n=$(wc -l 'a'* | awk '{print $1}'); echo $((n))": false, "n=$(wc -l {f,g} | awk '{print $1}'); echo $((n))": false, "n=$(! wc -l < f); echo $((n))": false,
		"echo $(( $(cat f) ))": false, "n=$(cat f); echo $((n))": false, "n=$(wc -l f); echo $((n))": false, "n=$(wc f); echo $((n))": false, "n=$(wc -l < f 2>&1); echo $((n))": false, "n=$(wc -l < f; cat f); echo $((n))": false, "n=$(cat f; wc -l < f); echo $((n))": false,
		"n=$(wc -l < f | cat f); echo $((n))": false, "n=$(wc -l < f || cat f); echo $((n))": false, "n=$(cat f && wc -l < f); echo $((n))": false, "n=$({ wc -l < f; cat f; } | cat); echo $((n))": false, "n=$(wc -l < f)$(cat g); echo $((n))": false, "n=a$(wc -l < f); echo $((n))": false,
		"n=$(wc -l --files0-from=f); echo $((n))": false, "n=$(wc -l *); echo $((n))": false, "n=$(grep -c x *); echo $((n))": false, "n=$(grep -c x f g); echo $((n))": false, "n=$(grep -rc x d); echo $((n))": false, "n=$(grep -c x -H f); echo $((n))": false, "n=$(grep -co x f); echo $((n))": false,
		"n=$(grep x f); echo $((n))": false, "n=$(grep -c -e x f); echo $((n))": false, "n=$(grep -c x $f); echo $((n))": false, "n=$(grep -c $x); echo $((n))": false, "n=$(grep -c x f{1,2}); echo $((n))": false, "n=$(date +%s%Z); echo $((n))": false, "n=$(date +a); echo $((n))": false, "n=$(id -un); echo $((n))": false,
		"n=$(wc -l < f); read n < g; echo $((n))": false, "n=$(wc -l < f); n=$(cat g); echo $((n))": false, "n=$(wc -l < f); n+=$(cat g); echo $((n))": false, "n=$(wc -l < f); if ls; then n=$(cat g); fi; echo $((n))": false, "n=$(cat g); ls && n=$(wc -l < f); echo $((n))": false, "read n < g; (n=$(wc -l < f)); echo $((n))": false,
		"n=$(A=b wc -l < f); echo $((n))": false, "n=$(\\wc -l < f); echo $((n))": false, "n=$(./wc -l < f); echo $((n))": false, "n=$(command wc -l < f); echo $((n))": false, "n=$(sudo wc -l < f); echo $((n))": false, "n=$(wc -l < f > g); echo $((n))": false, "wc() { cat g; }; n=$(wc -l < f); echo $((n))": false,
		"n=$(wc(){ cat g; }; wc -l < f); echo $((n))": false, "alias wc='cat g'; n=$(wc -l < f); echo $((n))": false, "n=$(curl x | wc -l); echo $((n))": false, "n=$(wc -l < /dev/tcp/h/1); echo $((n))": false, "n=$(wc -l < <(curl x)); echo $((n))": false, "n=$(wc -l < f 3>&1); echo $((n))": false, "m=(1); m[$(cat f)]=1; n=$(wc -l < f); echo $((n))": false,
		"n=$(wc -l < f); timeout $n curl x": false, "n=$(wc -l < f); eval $n": false, "n=$(wc -l < f); $n": false, "n=$(wc -l < f); bash -c $n": false, "n=$(exec 2>&1; wc -l < f); echo $((n))": false, "n=$({ wc -l < f; } 2>&1); echo $((n))": false, "n=$(wc -l < f &> g); echo $((n))": false,
	} {
		if r := classify.Shell(text, "/w"); (r.Class == classify.Local) != local {
			t.Errorf("%s: %v, want local %v: %v", text, r.Class, local, r.Reasons)
		}
	}
}

// TestF20ExportG5: a variable that no accepted program reads may be given to later commands; what it holds is followed (F20).
func TestF20ExportG5(t *testing.T) {
	for text, local := range map[string]bool{
		"export FOO=bar": true, "export FOO=bar BAZ=1; ls": true, `export TOKEN="t$(cat f)"`: true, "FOO=1; export FOO": true, "export DEBUG=1 && grep -r x .": true, "declare -x FOO=bar": true, "export API_URL=http://a.example/x": true,
		"export FOO=2; echo $((FOO + 1))": true,
		"export PATH=.":                   false, "export LD_PRELOAD=./x": false, "export BASH_ENV=x": false, "export GIT_SSH=./x": false, "export http_proxy=x": false, "export OPENSSL_CONF=x": false, "export XZ_OPT=x": false, "export NODE_OPTIONS=x": false,
		"export PYTHONPATH=x": false, "export LESSOPEN=x": false, "export ZDOTDIR=x": false, "export FOO=bar; make": false, "export FOO=curl; $FOO x": false, "export FOO=$(cat f)": false, "export FOO=$(curl x)": false, `export "$x=1"`: false,
		"FOO=1; read FOO < f; export FOO; echo $((FOO))": false, "x=1; export x=y; echo $((x))": false, "x=1; export x+=y; echo $((x))": false, "export IFS=x": false, "export UNZIP=-o": false, "export GOFLAGS=x": false, "export PAGER=x": false,
	} {
		if r := classify.Shell(text, "/w"); (r.Class == classify.Local) != local {
			t.Errorf("%s: %v, want local %v: %v", text, r.Class, local, r.Reasons)
		}
	}
}
