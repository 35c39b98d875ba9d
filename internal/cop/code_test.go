package cop

import "testing"

// TestNetCode: each way that the expression knows, also that the words in front of it let it through.
func TestNetCode(t *testing.T) {
	for _, code := range []string{
		"import socket", "import os, sys, socket", "from http.client import HTTPSConnection", "import urllib.request as u", "from urllib import request", "import urllib\n",
		"import paramiko", "import asyncssh", "import boto3", "import pycurl", "from scapy.all import *", "import xmlrpc.client", "import dns.resolver", "import nntplib",
		"import poplib", "import imaplib", "import httpx", "import aiohttp", "import websockets", "__import__('socket')", "importlib.import_module(\"requests\")",
		"urlopen(x)", "s.create_connection()", "await asyncio.open_connection(h, 1)", "requests.post(u)", "x = socket.gethostbyname(h)",
		"require('net')", "require(\"node:https\")", "import x from 'undici'", "import('dgram')", "await fetch('https://a.example')", "new WebSocket(u)", "Deno.connect({})",
		"Bun.connect({})", "require('axios')", "require('ws')", "require('got')", "new XMLHttpRequest()",
		"require 'net/http'", "require 'open-uri'", "require \"socket\"", "TCPSocket.new", "UNIXServer.new", "Net::SSH.start", "-rnet/http", "-ropen-uri",
		"use IO::Socket::INET;", "use LWP::Simple;", "use HTTP::Tiny", "WWW::Mechanize->new", "socket(S, PF_INET, 1, 6)", "gethostbyname('a')",
		"fsockopen('h', 1)", "stream_socket_client($u)", "socket_create(1,2,3)", "curl_init()", "file_get_contents('http://a')", "fopen(\"ftp://a\", 'r')", "dns_get_record('a')",
		"require('socket')", "socket.tcp()", "set s [socket a.example 80]", "socketConnection(", "download.file(u)", "using Sockets",
		"new java.net.URL(u)", "new Socket(h, 1)", "HttpClient.newHttpClient()", "New-Object Net.WebClient", "Invoke-WebRequest u", "x.DownloadString(u)",
		"import \"net\"", "net.Dial(\"tcp\", a)", "http.Get(u)", "gen_tcp:connect(", "import \"net/smtp\"", "open('/dev/tcp/a/1')", "\"/inet/tcp/0/a/1\"",
	} {
		r := reader{}
		r.code(code)
		if r.out.Has&NetCode == 0 {
			t.Errorf("%q: not seen, word %t", code, mayUseNet(code))
		}
	}
	for _, code := range []string{
		"import json, os", "from urllib.parse import quote", "print('socket')", "import network_model", "def fetch(x): pass", "requests = []", "let net = new Net()",
		"require('fs')", "import React from 'react'", "use strict; use JSON;", "echo 'http://a.example';", "x = http_status", "import \"fmt\"",
	} {
		r := reader{}
		r.code(code)
		if r.out.Has&NetCode != 0 {
			t.Errorf("%q: %s", code, r.out.Why(NetCode))
		}
	}
}
