package commands

const builds = "runs commands that files of the project name"

// buildTools are commands that build and test projects.
var buildTools = []*Command{
	{Names: "make gmake bmake cmake ctest ninja meson bazel bazelisk buck buck2 scons waf ant gradle gradlew mvn mvnw maven sbt just task tasks invoke inv nmake xmake premake5 gulp grunt pants earthly dagger tup redo", Class: Network, Rest: Data, Facts: Runtime, Why: builds + " (make does so even with -n)", Example: "make test"},
	{Names: "autoconf autoreconf automake aclocal libtool libtoolize configure autogen.sh pkg-config qmake", Class: Network, Rest: Data, Facts: Runtime, Why: builds},
	{Names: "pytest py.test tox nox unittest nose nosetests nose2 coverage behave robot pre-commit jest vitest mocha ava karma cypress playwright ng vue react-scripts next nuxt vite webpack rollup parcel esbuild tsc eslint prettier stylelint babel gatsby storybook phpunit pest rspec minitest cucumber busted", Class: Network, Rest: Data, Facts: Runtime, Why: "runs the project's code, or plug-ins that its configuration names", Example: "pytest -q"},
	{Names: "gcc# g++# cc c++ clang# clang++# cpp ld ld.gold ld.lld as nasm yasm ar rustc rustfmt javac ocamlc ocamlopt fpc gnatmake gfortran# nvcc dmd ldc2 swiftc", Class: Grey, AnyArgs: true, Rest: Read, Check: checkCompiler, Why: "plug-ins, wrappers and specs can be named in options, files and variables"},
	{
		Names: "gofmt", Class: Local, Short: "lse", Rest: Read, Why: "reads Go and prints what it would be, or the names of files; -w writes, -r rewrites", Example: "gofmt -l .",
		Refuse: []Refusal{{Options: "-w -d -r", Why: "writes files, or may run diff"}},
	},
	{Names: "tex latex pdftex pdflatex xetex xelatex luatex lualatex latexmk dvips bibtex biber", Class: Network, Rest: Data, Facts: Runtime, Why: "a document can run programs (write18, Lua)"},
}

// checkCompiler accepts questions for the version.
func checkCompiler(c *Call) {
	if len(c.Words) == 1 && c.Words[0].Fixed && Listed("gcc g++ cc c++ clang clang++", c.Name) && Listed("--version -dumpversion -dumpmachine", c.Words[0].Text) {
		c.Become(Local)
	}
}
