"""CSV files of two columns, and which of them Spark is not given to read."""

CASES = {
    "plain": b"a,b\n1,x\n2,y\n",
    "quotes": b'a,b\n"1","x ""y"" z"\n"2","p,q"\n',
    "line breaks in quotes": b'a,b\n1,"x\ny"\n2,"x\r\ny"\n3,z\n',
    "an empty line in quotes": b'a,b\n1,"x\n\ny"\n2,z\n',
    "lines that end as Windows has them": b"a,b\r\n1,x\r\n2,y\r\n",
    "lines that end as old Macs had them": b"a,b\r1,x\r2,y\r",
    "no line break at the end": b"a,b\n1,x\n2,y",
    "empty fields": b'a,b\n1,\n,y\n,\n"",""\n',
    "blanks": b"a,b\n 1 , x\n\t2,y \n",
    "an empty line": b"a,b\n1,x\n\n2,y\n",
    "an empty line at the end": b"a,b\n1,x\n2,y\n\n",
    "a byte order mark": b"\xef\xbb\xbfa,b\n1,x\n2,y\n",
    "backslashes": b'a,b\n1,x\\y\n2,"x\\"\n',
    "hashes": b"a,b\n#1,x\n2,#y\n",
    "a quote within a field": b'a,b\n1,x"y\n2,y\n',
    "other scripts": "a,b\n1,\u5176\u4ed6\n2,\U0001f600\n3,\ufffd\n".encode(),
    "a null character": b"a,b\n1,x\x00y\n2,y\n",
    "words for nothing": b"a,b\nNULL,NA\nnan,null\n",
    "semicolons": b"a;b\n1;x,y\n2;y\n",
    "one record": b"a,b\n1,x\n",
    "a short line": b"a,b\n1,x\n2\n",
    "a long line": b"a,b\n1,x\n2,y,z\n",
    "a blank line": b"a,b\n1,x\n  \n2,y\n",
    "two kinds of line breaks": b"a,b\n1,x\r\n2,y\n",
    "a quote that is not closed": b'a,b\n1,"x\n2,y\n',
    "text behind a quote": b'a,b\n1,"x"y\n2,y\n',
    "no UTF-8": b"a,b\n1,na\xefve\n2,y\n",
    "blanks before a quote": b'a,b\n1, "x"\n2,y\n',
}
AMBIGUOUS = list(CASES)[-5:]
"""Refused before Spark sees them; DuckDB reads the last one."""
