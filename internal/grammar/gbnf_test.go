package grammar

var gbnfSamples = map[string]string{
	"list":    "root ::= item+\nitem ::= \"- \" [^\\n]+ \"\\n\"\n",
	"chess":   "root ::= \"1. \" move \" \" move \"\\n\" ([1-9] [0-9]? \". \" move \" \" move \"\\n\")+\nmove ::= (pawn | nonpawn | castle) [+#]?\nnonpawn ::= [NBKQR] [a-h]? [1-8]? \"x\"? [a-h] [1-8]\npawn ::= ([a-h] \"x\")? [a-h] [1-8] (\"=\" [NBKQR])?\ncastle ::= \"O-O\" \"-O\"?\n",
	"arith":   "root ::= (expr \"=\" ws num \"\\n\")+\nexpr ::= term ([-+*/] term)*\nterm ::= ident | num | \"(\" ws expr \")\" ws\nident ::= [a-z] [a-z0-9_]* ws\nnum ::= [0-9]+ ws\nws ::= [ \\t\\n]*\n",
	"nested":  "root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"\"\n",
	"palin":   "root ::= \"a\" root \"a\" | \"b\" root \"b\" | \"a\" | \"b\" | \"\"\n",
	"unicode": "root ::= [ぁ-んァ-ヶ\\u4e00-\\u9fff]{2,5} . \"\\U0001F600\"?\n",
}
